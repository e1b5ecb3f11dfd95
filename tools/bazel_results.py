#!/usr/bin/env python3
"""Counts the tests of one `bazel test` from its build event file.

Usage: tools/bazel_results.py EVENTS EXIT_CODE [ARGUMENT…]
EVENTS was written by --build_event_json_file. Prints "PASSED FAILED" on
standard output and the label and state of each failure on standard error, with
the command that repeats it: of the arguments, those that are --config=. A
test that was not built or not run has failed; so has a build that failed
without any failed test.
"""
import json
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def results(events):
    """The state of each test by label: PASSED, or what went wrong."""
    states = {}
    for event in events:
        kind = next(iter(event["id"]))
        label = event["id"][kind].get("label") if isinstance(event["id"][kind], dict) else None
        if kind == "targetConfigured" and "testSize" in event.get("configured", {}):
            states.setdefault(label, "NOT BUILT")
        elif kind in ("targetConfigured", "targetCompleted") and event.get("aborted", {}).get("reason"):
            # Without a reason it is a flag, which was never to be built.
            states[label] = event["aborted"]["reason"]
        elif kind == "testSummary":
            states[label] = event.get("testSummary", {}).get("overallStatus", "NO STATUS")
    return states


def main():
    events, exit_code = sys.argv[1], int(sys.argv[2])
    command = ["bazel", "test"] + [word for word in sys.argv[3:] if word.startswith("--config=")]
    try:
        states = results(read(events))
    except (OSError, ValueError) as error:
        print("  no results: %s" % error, file=sys.stderr)
        print("0 1")
        return
    failed = sorted((label, state) for label, state in states.items() if state != "PASSED")
    for label, state in failed:
        print("  %s: %s" % (state, label), file=sys.stderr)
        print("    alone: %s %s" % (" ".join(command), label), file=sys.stderr)
    passed = len(states) - len(failed)
    without_test = not failed and (exit_code != 0 or passed == 0)
    if without_test:
        print("  bazel ended with %d and ran %d tests" % (exit_code, passed), file=sys.stderr)
    print(passed, len(failed) + without_test)


if __name__ == "__main__":
    main()
