#!/usr/bin/env python3
"""Commands with a process, where hakmem is part of the program.

Usage: linked_process_test.py HAKMEM LINKED STATIC LIBRARY OTHER_LIBRARY
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

from planted_process import PlantedProcessTest

HAKMEM, LINKED, STATIC, LIBRARY, OTHER_LIBRARY = (os.path.abspath(path) for path in sys.argv[1:6])
MIB = 1 << 20
READY = """
import sys
print("ready", flush=True)
sys.stdin.read()
"""
# Serves itself by one copy, and calls another one.
TWO = """
import ctypes, sys
ctypes.CDLL(sys.argv[1]).malloc(100)
""" + READY


class LinkedProcessTest(PlantedProcessTest):
    def hakmem(self, *arguments, status=0):
        done = subprocess.run([HAKMEM, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def report(self, *arguments):
        return json.loads(self.hakmem(*arguments).stdout)

    def stripped(self, program):
        copy = self.folder / os.path.basename(program).replace("planted", "bare")
        subprocess.run(["strip", "--strip-all", "-o", copy, program], check=True)
        return str(copy)

    def check(self, name, program):
        """All that can be read, of a process or a core file."""
        stats = self.report("stats", "--json", name)
        self.assertEqual((stats["variant"], stats["program"]), ("release", os.path.basename(program)))
        self.assertGreater(stats["granted_bytes"], 16 * MIB)
        self.assertIn("HAKMEM_DECAY_MS", stats["options"])
        classes = self.report("heap", "--by-class", "--json", name)
        self.assertGreaterEqual(classes["all"]["live_bytes"], 16 * MIB)
        heap, = self.report("heap", "--json", name)["profiles"]
        self.assertGreater(heap["live"]["bytes"], 8 * MIB)
        if os.path.basename(program).startswith("planted"):
            self.assertIn("PlantedLeak", json.dumps(heap["sites"]))
        self.assertIn("has failed: hakmem", self.hakmem("failures", name).stdout)
        return stats

    def test_linked_static_and_stripped(self):
        for program in (LINKED, STATIC, self.stripped(LINKED), self.stripped(STATIC)):
            with self.subTest(program=program):
                process = self.start(program, "hold", "leak", library=None, HAKMEM_PROFILE_BYTES="16K")
                stats = self.check(process.pid, program)
                del stats["resident_bytes"]
                self.assertEqual(self.check(self.core_of(process), program), stats)
                row, = self.report("top", "--once", "--json", "--interval=0.1", process.pid)["processes"]
                self.assertEqual(row["granted_bytes"], stats["granted_bytes"])
                refused = self.hakmem("purge", process.pid, status=1)
                self.assertIn("was not started with HAKMEM_CONTROL=1", refused.stderr)

    def test_commands(self):
        process = self.start(self.stripped(STATIC), "work", "leak", library=None, HAKMEM_CONTROL="1")
        self.assertIn("went back to the kernel", self.hakmem("purge", process.pid).stdout)

    def test_of_two_copies_the_one_that_serves(self):
        process = self.start(LINKED, "hold", "leak", library=OTHER_LIBRARY, HAKMEM_PROFILE_BYTES="16K")
        self.check(process.pid, LINKED)

    def test_of_two_preloaded_copies_the_first(self):
        for first, other, variant in ((LIBRARY, OTHER_LIBRARY, "release"), (OTHER_LIBRARY, LIBRARY, "hardened")):
            process = self.start(sys.executable, "-c", READY, library="%s %s" % (first, other))
            self.assertEqual(self.report("stats", "--json", process.pid)["variant"], variant)

    def test_two_copies_that_serve(self):
        copy = shutil.copy(LIBRARY, self.folder / "copy.so")
        process = self.start(sys.executable, "-c", TWO, copy, library=LIBRARY)
        for command in (["stats"], ["heap"], ["heap", "--by-class"], ["failures"], ["purge"]):
            done = self.hakmem(*command, process.pid, status=1)
            self.assertIn("there are two copies of hakmem in process %d" % process.pid, done.stderr)
            self.assertIn("copy.so", done.stderr)

    def test_a_later_form(self):
        core = self.core_of(self.start(LINKED, "hold", "leak", library=None))
        later = self.folder / "later"
        later.write_bytes(core.read_bytes().replace(b"haktabs\0" + struct.pack("I", 1), b"haktabs\0" + struct.pack("I", 9)))
        self.assertIn("lists its tables in a form that this command does not know", self.hakmem("stats", later, status=1).stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
