#!/usr/bin/env python3
"""hakmem_failures.py, on a live process and on its core file.

Usage: hakmem_failures_test.py SCRIPT PROGRAM LIBRARY OLD_RING
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def gdb(*arguments):
    result = subprocess.run(["gdb", "-nx", "-batch", *arguments], check=False, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
    return result.stdout


def expect(output, *patterns):
    for pattern in patterns:
        if not re.search(pattern, output, re.M):
            sys.exit("no line matches %r in:\n%s" % (pattern, output))


def main():
    script, program, library, old_ring = (os.path.abspath(path) for path in sys.argv[1:])
    if shutil.which("gdb") is None:
        sys.exit("gdb is not installed (tools/setup.sh installs it)")
    with tempfile.TemporaryDirectory() as folder:
        # Without debug information, as it is installed.
        stripped = pathlib.Path(folder) / os.path.basename(library)
        subprocess.run(["strip", "--strip-all", "-o", stripped, library], check=True)
        core = pathlib.Path(folder) / "core"
        live = gdb("-ex", "set startup-with-shell off",
                   "-ex", "set environment LD_PRELOAD %s" % stripped,
                   "-ex", "break all_is_done", "-ex", "run",
                   "-ex", "source " + script, "-ex", "hakmem-failures",
                   "-ex", "hakmem-failures 1", "-ex", "hakmem-failures all",
                   "-ex", "hakmem-failures 0", "-ex", "generate-core-file %s" % core, program)
        whole = (
            r"^hakmem \d+\.\d+\.\d+ release: 3 failures, 3 shown$",
            r"^#1 \d{4}-\d\d-\d\dT[\d:.]+Z malloc of 1152921504606846976 bytes \(alignment 16, "
            r"route huge\) returned_null after 1 attempt: Threshold/size$",
            r'^    process \d+, thread \d+ "fails"; live \d+, granted \d+, cached \d+, '
            r"mapped \d+ bytes$",
            # A count a second is enough.
            r'^    process \d+, thread \d+ "fails"; granted \d+, cached \d+, mapped \d+ bytes$',
            r"^    region is \d+, in use 0, needed 1152921504606846976 \(hakmem\)$",
            r"^    0x[0-9a-f]+ allocate_too_much \+ \d+ in section \.text",
            r"^#2 \S+ calloc of 9223372036854775807 times 1152921504606846976 bytes .*"
            r"Threshold/overflow$",
            r"^#3 \S+ calloc of 7 times 144115188075855872 bytes .*Threshold/size$")
        expect(live, *whole, r"^hakmem \S+ release: 3 failures, 1 shown$",
               "^not a count of failures: all$", "^not a count of failures: 0$")
        if not core.exists():
            sys.exit("gdb has written no core file:\n" + live)
        dead = gdb("-ex", "source " + script, "-ex", "hakmem-failures", program, core)
        expect(dead, *whole)
        # In the middle of a program of another language, which stays the one that is chosen.
        for language in ("rust", "fortran", "pascal", "ada"):
            dead = gdb("-ex", "source " + script, "-ex", "set language " + language, "-ex", "hakmem-failures",
                       "-ex", "show language", program, core)
            expect(dead, *whole, '^The current source language is "%s"' % language)
    # An older hakmem's events are shorter.
    old = gdb("-ex", "set startup-with-shell off", "-ex", "break main", "-ex", "run",
              "-ex", "source " + script, "-ex", "hakmem-failures", old_ring)
    expect(old, r"^hakmem 0\.1\.0 release: 1 failure, 1 shown$",
           r"^#1 \S+ malloc of 100 bytes .* returned_null after 1 attempt: Threshold/max_alloc$",
           r'^    process 7, thread 8 "old"; granted 1, cached 2, mapped 3 bytes$')
    # A process without hakmem is said to be one.
    other = gdb("-ex", "set startup-with-shell off", "-ex", "break all_is_done", "-ex", "run",
                "-ex", "source " + script, "-ex", "hakmem-failures", program)
    expect(other, "no hakmem in this process")


if __name__ == "__main__":
    main()
