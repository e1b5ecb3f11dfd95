#!/usr/bin/env python3
"""The examples in docs/failure_events.md agree with the schema, and its tables and the
debugger's script name all that the library names.

Usage: failure_events_doc_test.py DOCUMENT SCHEMA FAILURE_EVENT_CC GDB_SCRIPT
"""
import json
import pathlib
import re
import sys

import jsonschema


def names(source, array):
    """The strings of an array or tuple in C++ or Python."""
    found = re.search(r"\b%s(?:\[\])? = [({](.*?)[)}]" % array, source, re.S)
    if not found:
        sys.exit("no %s" % array)
    return re.findall(r'"([^"]*)"', re.sub(r'"\s*\n\s*"', "", found[1]))


def main():
    document, schema, library, script = (pathlib.Path(path).read_text() for path in sys.argv[1:])
    kind = jsonschema.validators.validator_for(json.loads(schema))
    validator = kind(json.loads(schema))
    examples = re.findall(r"<!-- example -->\n```\n(.*?)```", document, re.S)
    seen = set()
    for example in examples:
        line = json.loads(example)
        for error in validator.iter_errors(line):
            sys.exit("an example is not valid: %s\n%s" % (error.message, example))
        seen.add(line["event"])
        seen.add(line.get("reason"))
    events = json.loads(schema)["properties"]["event"]["enum"]
    for needed in (*events, "Threshold", "Exhaustion", "MapFail"):
        if needed not in seen:
            sys.exit("no example of " + needed)
    for cc_name, script_name in (("kReasonNames", "REASONS"), ("kDetailNames", "DETAILS"),
                                 ("kDispositionNames", "DISPOSITIONS"), ("kCallNames", "CALLS"),
                                 ("kVmCallNames", "VM_CALLS")):
        known = names(library, cc_name)
        if known != names(script, script_name):
            sys.exit("%s of the debugger's script differ from %s" % (script_name, cc_name))
        if cc_name in ("kDetailNames", "kDispositionNames"):
            for name in known:
                if name != "none" and name not in document:
                    sys.exit("the document does not explain " + name)


if __name__ == "__main__":
    main()
