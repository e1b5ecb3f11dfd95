#!/usr/bin/env python3
"""Holds the size and shape of the allocator against tools/budgets.txt.

Usage: tools/budgets.py [FILE]
Prints a line for each budget, what is true now beside the most it may be, and
exits with 1 if something is over its budget or a row of the file is stale.
The rows of FILE are `NAME | MOST | KIND ARGUMENT…`:
  feature PATTERN…     lines of the files that no earlier feature has; each file
                       belongs to one
  lines PATTERN…       lines of all files that match
  methods FILE CLASS   functions that the class in FILE declares or defines
  calls NAME PATTERN…  calls of the function in all files that match
  text FILE STRING     how often the string stands in FILE
  includers FILE       sources that are compiled anew when FILE changes
  reaches FILE         headers that FILE includes, directly or by way of others
  cycles FOLDER        headers in FOLDER that include themselves by way of others
Lines are those of the .cc, .h and .inc files of the allocator and of the
command, without tests; a pattern is a glob for the path, in which * also stands
for /.
"""
import fnmatch
import functools
import os
import re
import subprocess
import sys

from lint import blank_non_code

CPP = (".cc", ".h", ".inc")
TESTS = ("*_test.cc", "*/test_*", "*/fake_*", "allocator/tests/*", "allocator/testing/*", "allocator/layering_test/*",
         "tools/hakmem/*_program.cc", "tools/hakmem/own_malloc.cc", "tools/hakmem/paused_sleep.cc",
         "tools/hakmem/cut_file.cc")
COUNTED = ("allocator/", "tools/hakmem/")


def matches(path, patterns):
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


@functools.cache
def known_files():
    """All C++ files that git knows or would add."""
    out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                         capture_output=True, text=True).stdout
    return [path for path in sorted(set(out.split("\0"))) if path.endswith(CPP) and os.path.exists(path)]


def counted_files():
    return [path for path in known_files() if path.startswith(COUNTED) and not matches(path, TESTS)]


@functools.cache
def includes():
    known = set(known_files())
    return {path: known.intersection(re.findall(r'^#include "([^"]+)"', read(path), re.MULTILINE))
            for path in known}


def reached(path):
    """What `path` includes, directly or by way of others."""
    found, left = set(), [path]
    while left:
        for other in includes()[left.pop()] - found:
            found.add(other)
            left.append(other)
    return found


def declared_functions(text, name):
    """How many functions class `name` has in `text`, without constructors and assignments."""
    code = blank_non_code(text)
    head = re.search(r"\b(?:class|struct)\s+(?:alignas\(\w+\)\s+)?%s\b[^;{]*\{" % name, code)
    if not head:
        raise LookupError("no class %s" % name)
    depth, flat = 0, []
    for char in code[head.end():]:
        depth += (char == "{") - (char == "}")
        if depth < 0:
            break
        if depth == 0:
            flat.append(";" if char == "}" else char)
    count = 0
    for member in "".join(flat).split(";"):
        member = re.sub(r"\b(?:public|private|protected)\s*:|template\s*<[^>]*>", "", member).strip()
        # Macros are in capitals; alignas(…) and an initialiser are no parameters.
        called = re.match(r"[^(=]*?\b(?!alignas)(operator\W+|\w*[a-z]\w*)\s*\(", member)
        count += bool(called and called.group(1) not in (name, "operator=")
                      and not re.match(r"friend|using|static_assert|:", member))
    return count


class Budgets:
    """One run over the rows: features take their files in the order of the rows."""

    def __init__(self):
        self.free = counted_files()

    def lines(self, patterns, files):
        for pattern in patterns:
            if not any(fnmatch.fnmatchcase(path, pattern) for path in counted_files()):
                raise LookupError("no file matches %s" % pattern)
        taken = [path for path in files if matches(path, patterns)]
        return sum(read(path).count("\n") for path in taken), taken

    def measure(self, kind, arguments):
        if kind == "feature":
            lines, taken = self.lines(arguments, self.free)
            self.free = [path for path in self.free if path not in taken]
            return lines
        if kind == "lines":
            return self.lines(arguments, counted_files())[0]
        if kind == "calls":
            files = self.lines(arguments[1:], counted_files())[1]
            return sum(len(re.findall(r"\b%s\(" % arguments[0], blank_non_code(read(path)))) for path in files)
        if kind == "methods":
            return declared_functions(read(arguments[0]), arguments[1])
        if kind == "text":
            return read(arguments[0]).count(" ".join(arguments[1:]))
        if kind in ("includers", "reaches") and arguments[0] not in includes():
            raise LookupError("no file %s" % arguments[0])
        if kind == "reaches":
            return len(reached(arguments[0]))
        if kind == "includers":
            return sum(path.endswith(".cc") and arguments[0] in reached(path) for path in known_files())
        if kind == "cycles":
            return sum(path.startswith(arguments[0]) and path in reached(path) for path in known_files())
        raise LookupError("no kind %s" % kind)


def rows(text):
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            name, most, how = (part.strip() for part in line.split("|"))
            yield number, name, int(most), how.split()


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "tools/budgets.txt"
    budgets = Budgets()
    wrong = 0
    features = False
    print("%7s %7s" % ("now", "most"))
    for number, name, most, (kind, *arguments) in rows(read(path)):
        features = features or kind == "feature"
        try:
            now = budgets.measure(kind, arguments)
        except (LookupError, OSError) as error:
            print("%s:%d: %s" % (path, number, error))
            wrong += 1
            continue
        over = now > most
        wrong += over
        print("%7d %7d  %s%s" % (now, most, name, ": OVER ITS BUDGET" if over else ""))
    if features:
        for left in budgets.free:
            print("%s: %s belongs to no feature" % (path, left))
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
