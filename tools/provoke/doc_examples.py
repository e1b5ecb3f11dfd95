#!/usr/bin/python3
"""Keeps the examples in documents true: each is what the tools really print.

Usage: doc_examples.py HAKMEM LIBRARY PROVOKE [--update] DOCUMENT…

An example is a fenced block after a line of its own that names it:

    <!-- example: explain rlimit_as -->

The first word says what is shown of the case of PROVOKE that follows:
  explain   what `hakmem explain` says of its trace (also without this word)
  run       what `hakmem run` says when it has ended
  line      the first event of its trace, as it stands there
Numbers, addresses, times and folders are another each time, so they are not
compared; every word is. --update writes what is printed now into DOCUMENT.
"""
import argparse
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

EXAMPLE = re.compile(r"^<!-- example: (?:(explain|run|line) )?(\w+) -->\n+(```\w*\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)


class Source:
    """Runs each case once, in a folder whose name says nothing."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.runs = {}

    def run(self, case):
        """What `hakmem run` says, and the path of the trace."""
        if case not in self.runs:
            folder = tempfile.mkdtemp(dir=self.arguments.scratch)
            trace = os.path.join(folder, "trace")
            command = [self.arguments.hakmem, "run", "--library=" + self.arguments.library, "--trace=" + trace,
                       "--", self.arguments.provoke, case]
            result = self.call(command)
            self.runs[case] = (result.stderr, trace)
        return self.runs[case]

    def call(self, command):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": self.arguments.scratch, "COLUMNS": "100"}
        return subprocess.run(command, env=environment, capture_output=True, text=True,
                              cwd=self.arguments.scratch, check=False)

    def text(self, kind, case):
        said, trace = self.run(case)
        if kind == "run":
            return self.tidy(said, trace)
        if kind == "line":
            lines = pathlib.Path(trace).read_text().splitlines()
            return self.tidy(next(line for line in lines if json.loads(line)["event"] == "failure") + "\n", trace)
        result = self.call([self.arguments.hakmem, "explain", trace])
        if result.returncode != 0:
            sys.exit("hakmem explain, %s: %s" % (case, result.stderr))
        return self.tidy(result.stdout, trace)

    def tidy(self, text, trace):
        """Folders that the reader does not have look as they would in use."""
        for path, shown in ((trace, "trace.jsonl"), (self.arguments.provoke, "/usr/bin/provoke"),
                            (self.arguments.library, "/usr/lib/libhakmem.so")):
            text = text.replace(path, shown)
        return re.sub(r"[^\s\"']*/(tools/provoke/)", r"\1", text)


def comparable(text):
    """The words, one a line, as numbers decide where lines break; whatever is counted or measured is #."""
    text = re.sub(r"\b\d{4}-\d\d-\d\dT[0-9:.]+Z?", "#time", text)
    text = re.sub(r"\b(0x)?[0-9a-f]{6,}\b", "#", text)
    text = re.sub(r"[\d,]*\d(\.\d+)?( ?([KMGTE]i)?B\b| bytes\b)?", "#", text)
    return "\n".join(text.split())


def check(path, source, update):
    """Returns the number of examples and the names of those that differ."""
    text = pathlib.Path(path).read_text()
    differing = []
    names = []

    def replaced(match):
        kind, case, fence, shown, end = match.groups()
        kind = kind or "explain"
        names.append("%s %s" % (kind, case))
        now = source.text(kind, case)
        if comparable(now) != comparable(shown):
            differing.append(names[-1])
            if not update:
                sys.stdout.writelines(line + "\n" for line in difflib.unified_diff(
                    comparable(shown).splitlines(), comparable(now).splitlines(),
                    "%s: %s" % (path, names[-1]), "now", lineterm=""))
            head = match.group(0)[:match.start(3) - match.start(0)]
            return head + fence + now.rstrip("\n") + "\n" + end
        return match.group(0)

    new = EXAMPLE.sub(replaced, text)
    if len(names) != text.count("<!-- example:"):
        sys.exit("%s: an example's name is not followed by a fenced block" % path)
    if update and new != text:
        pathlib.Path(path).write_text(new)
    return len(names), differing


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("hakmem", "library", "provoke"):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("documents", nargs="+", type=os.path.abspath)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    bad = total = 0
    with tempfile.TemporaryDirectory() as arguments.scratch:
        source = Source(arguments)
        for path in arguments.documents:
            count, differing = check(path, source, arguments.update)
            total += count
            bad += len(differing)
            for name in differing:
                print("%s: %s: %s" % (path, name, "updated" if arguments.update else "is no longer what is printed"))
    if total == 0:
        sys.exit("no examples found")
    print("%d examples, %d %s" % (total, bad, "updated" if arguments.update else "differ"))
    sys.exit(1 if bad and not arguments.update else 0)


if __name__ == "__main__":
    main()
