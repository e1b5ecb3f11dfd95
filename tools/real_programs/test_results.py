"""Prints each test case of a JUnit file, sorted, with its result."""
import sys
import xml.etree.ElementTree

cases = xml.etree.ElementTree.parse(sys.argv[1]).iter("testcase")
lines = set()
for case in cases:
    result = case.get("result", "")
    if case.find("failure") is not None or case.find("error") is not None:
        result = "failed"
    elif case.find("skipped") is not None:
        result = "skipped"
    lines.add("%s %s %s" % (case.get("name"), case.get("status"), result))
print("\n".join(sorted(lines)))
