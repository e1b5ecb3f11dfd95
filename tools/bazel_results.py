#!/usr/bin/env python3
"""Counts the tests of one `bazel test` from its build event file.

Usage: tools/bazel_results.py EVENTS EXIT_CODE [ARGUMENT…]
EVENTS was written by --build_event_json_file. Prints "PASSED FAILED" on
standard output and the label and state of each failure on standard error, with
the command that repeats it: of the arguments, those that are --config=. The
first lines of its log that say what failed stand there again: the whole log,
before them, may be long. A test that was not built or not run has failed; so
has a build that failed without any failed test.
"""
import json
import re
import sys
import urllib.parse

# googletest's, unittest's, the sanitizers' and HAK_CHECK's.
TELLING = re.compile(r": Failure$|^(FAIL|ERROR): |^Traceback |ERROR: \w+Sanitizer|runtime error: |hakmem: .*check")
LINES_AFTER = 7
MOST_LINES = 24


def read(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def telling_lines(log):
    """Of a test's log, the first lines that say what failed, and those right after them."""
    lines, until = [], 0
    for number, line in enumerate(log):
        if TELLING.search(line.rstrip()):
            until = number + 1 + LINES_AFTER
        if number < until and len(lines) < MOST_LINES:
            lines.append(line.rstrip()[:300])
    return lines


def read_log(uri):
    try:
        with open(urllib.parse.unquote(urllib.parse.urlparse(uri).path), encoding="utf-8", errors="replace") as file:
            return telling_lines(file)
    except OSError:
        return []


def results(events):
    """By label, the state of each test (PASSED, or what went wrong), and the logs of those that failed."""
    states, logs = {}, {}
    for event in events:
        kind = next(iter(event["id"]))
        label = event["id"][kind].get("label") if isinstance(event["id"][kind], dict) else None
        if kind == "targetConfigured" and "testSize" in event.get("configured", {}):
            states.setdefault(label, "NOT BUILT")
        elif kind in ("targetConfigured", "targetCompleted") and event.get("aborted", {}).get("reason"):
            # Without a reason it is a flag, which was never to be built.
            states[label] = event["aborted"]["reason"]
        elif kind == "testSummary":
            summary = event.get("testSummary", {})
            states[label] = summary.get("overallStatus", "NO STATUS")
            logs[label] = [log["uri"] for log in summary.get("failed", []) if "uri" in log]
    return states, logs


def main():
    events, exit_code = sys.argv[1], int(sys.argv[2])
    command = ["bazel", "test"] + [word for word in sys.argv[3:] if word.startswith("--config=")]
    try:
        states, logs = results(read(events))
    except (OSError, ValueError) as error:
        print("  no results: %s" % error, file=sys.stderr)
        print("0 1")
        return
    failed = sorted((label, state) for label, state in states.items() if state != "PASSED")
    for label, state in failed:
        print("  %s: %s" % (state, label), file=sys.stderr)
        print("    alone: %s %s" % (" ".join(command), label), file=sys.stderr)
        for line in [line for uri in logs.get(label, []) for line in read_log(uri)][:MOST_LINES]:
            print("    | " + line, file=sys.stderr)
    passed = len(states) - len(failed)
    without_test = not failed and (exit_code != 0 or passed == 0)
    if without_test:
        print("  bazel ended with %d and ran %d tests" % (exit_code, passed), file=sys.stderr)
    print(passed, len(failed) + without_test)


if __name__ == "__main__":
    main()
