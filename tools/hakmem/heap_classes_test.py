#!/usr/bin/env python3
"""`hakmem heap --by-class`, on processes that run and on their core files.

Usage: heap_classes_test.py HAKMEM PROGRAM LIBRARY...
"""
import json
import os
import re
import struct
import subprocess
import sys
import unittest

from planted_process import PlantedProcessTest

HAKMEM, PROGRAM, *LIBRARIES = (os.path.abspath(path) for path in sys.argv[1:])
# Where hakmem_get_statistics has it.
GRANTED_BYTES = 15
FREE = ("cached_blocks", "hole_blocks", "fresh_blocks")


class HeapClassesTest(PlantedProcessTest):
    def start(self, *command, library=LIBRARIES[0], **options):
        return super().start(*command, library=library, **options)

    def heap(self, *arguments, status=0):
        done = subprocess.run([HAKMEM, "heap", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def report(self, name):
        return json.loads(self.heap("--by-class", "--json", name).stdout)

    def fails_with(self, words, name):
        done = self.heap("--by-class", name, status=1)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, "^hakmem heap: .*" + words)

    def test_counts_what_the_process_itself_counts(self):
        self.assertEqual(len(LIBRARIES), 4)
        for library in LIBRARIES:
            told = self.folder / "told"
            with told.open("w") as stderr:
                process = self.start(PROGRAM, "tell", "mixed", library=library, stderr=stderr)
            own = [int(word) for word in process.stdout.readline().split()]
            classes = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +\d+\.\d %$", told.read_text(), re.MULTILINE)
            # The planted ones; empty slabs of others stay for a decay delay.
            self.assertGreaterEqual(sum(int(row[2]) >= 50 for row in classes), 2, library)
            report = self.report(process.pid)
            self.assertEqual([[entry[key] for key in ("block_bytes", "slabs", "live_blocks", "live_bytes", "free_blocks")]
                              for entry in report["classes"]], [list(map(int, row)) for row in classes], library)
            for entry in report["classes"]:
                self.assertEqual(sum(entry[kind] for kind in FREE), entry["free_blocks"], library)
            # All that is granted is somebody's.
            self.assertEqual(report["all"]["taken_bytes"], own[GRANTED_BYTES], library)
            # Fifty of each; a C++ runtime may keep one beside.
            self.assertIn(report["spans"]["live_blocks"], (50, 51), library)
            self.assertEqual(report["huge"]["live_blocks"], 50, library)
            self.assertGreaterEqual(report["huge"]["live_bytes"], 50 * 300_000_000)
            for kind in ("spans", "huge"):
                self.assertLessEqual(report[kind]["live_bytes"], report[kind]["taken_bytes"])
            parts = [report[kind] for kind in ("spans", "huge", "guarded")] + report["classes"]
            for key in ("live_blocks", "live_bytes", "taken_bytes"):
                self.assertEqual(report["all"][key], sum(part[key] for part in parts))
            self.assertEqual((report["schema"], report["version"], report["pid"], report["program"]),
                             ("hakmem-classes", 1, process.pid, "planted_program"))
            self.assertIn(report["variant"], library if report["variant"] != "release" else "release")

    def test_counts_samples_and_guarded_blocks(self):
        for options in ({"HAKMEM_PROFILE_BYTES": "64"}, {"HAKMEM_GUARD_SAMPLE": "100"}):
            process = self.start(PROGRAM, "hold", "leak", **options)
            report = self.report(process.pid)
            kibs = next(entry for entry in report["classes"] if entry["block_bytes"] == 1024)
            guarded = report["guarded"]["live_blocks"]
            self.assertEqual(guarded != 0, "HAKMEM_GUARD_SAMPLE" in options)
            self.assertLessEqual(abs(kibs["live_blocks"] + guarded - 16 * 1024), 20, options)

    def test_says_where_free_blocks_are(self):
        for library in LIBRARIES:
            report = self.report(self.start(PROGRAM, "hold", "holes", library=library).pid)
            planted = max(report["classes"], key=lambda entry: entry["live_blocks"] * (entry["block_bytes"] >= 1024))
            self.assertEqual((planted["live_blocks"], planted["cached_blocks"]), (2038, 10), library)
            # And what was taken ahead, for a magazine, and came back unused.
            self.assertLessEqual(2048, planted["hole_blocks"], library)
            self.assertLessEqual(planted["hole_blocks"], 2048 + 63, library)

    def test_a_core_file_says_the_same(self):
        process = self.start(PROGRAM, "hold", "leak")
        live = self.report(process.pid)
        self.assertGreater(live["spans"]["live_blocks"], 0)
        self.assertEqual(self.report(self.core_of(process)), live)

    def test_text(self):
        process = self.start(PROGRAM, "hold", "leak")
        report = self.report(process.pid)
        lines = self.heap("--by-class", process.pid).stdout.splitlines()
        self.assertRegex(lines[0], r"^planted_program\[%d\]: %d blocks of [\d.]+ MiB live, in [\d.]+ MiB$"
                         % (process.pid, report["all"]["live_blocks"]))
        self.assertEqual(lines[2].split(), "blocks of slabs live bytes live free taken used".split())
        end = lines.index("")
        end = lines.index("", end + 1)
        rows = {line.split()[0]: line.split()[1:] for line in lines[3:end]}
        kibs = next(entry for entry in report["classes"] if entry["block_bytes"] == 1024)
        self.assertEqual([int(cell.replace(",", "")) for cell in rows["1,024"][:-1]],
                         [kibs[key] for key in ("slabs", "live_blocks", "live_bytes", "free_blocks", "taken_bytes")])
        self.assertEqual(rows["1,024"][-1], "%.1f%%" % (100 * kibs["live_bytes"] / kibs["taken_bytes"]))
        self.assertEqual(int(rows["all"][0].replace(",", "")), report["all"]["live_blocks"])
        self.assertRegex(lines[end + 1], r"^Free in slabs: [\d.]+ \w+ cached by threads, [\d.]+ \w+ in holes, [\d.]+ \w+ fresh$")
        self.assertEqual(lines[end + 3].split(), "blocks of free cached holes fresh".split())
        rows = {row[0]: [int(cell) for cell in row[1:]]
                for row in (line.replace(",", "").split() for line in lines[end + 4:])}
        self.assertEqual(rows.pop("1024"), [kibs[key] for key in ("free_blocks", *FREE)])
        every = rows.pop("all")
        self.assertEqual(every, [sum(entry[key] for entry in report["classes"]) for key in ("free_blocks", *FREE)])
        self.assertLessEqual(max(map(len, lines)), 80)

    def test_a_process_that_allocates_meanwhile(self):
        process = self.start(PROGRAM, "churn", "leak")
        for _ in range(20):
            kibs = next(entry for entry in self.report(process.pid)["classes"] if entry["block_bytes"] == 1024)
            # What leaked, and one that comes and goes.
            self.assertLessEqual(abs(kibs["live_blocks"] - 16 * 1024), 3)

    def test_says_what_is_wrong(self):
        hold = [PROGRAM, "hold", "leak"]
        process = self.start(*hold)
        self.fails_with("there is no process", 2 ** 30)
        self.fails_with("there is no hakmem in process", self.start(*hold, library=None).pid)
        self.fails_with("a heap profile does not have them", __file__)
        content = self.core_of(process).read_bytes()
        damaged = self.folder / "damaged"
        damaged.write_bytes(content[:len(content) // 50])
        self.fails_with("cut off", damaged)
        damaged.write_bytes(content.replace(b"hakblok\0" + struct.pack("I", 2), b"hakblok\0" + struct.pack("I", 9)))
        self.fails_with("in a form that this command does not know", damaged)
        for wrong in ((), ("--diff", process.pid), ("--html=page.html", process.pid), (process.pid, process.pid),
                      ("--by=peak", process.pid), ("--top=3", process.pid), ("--symbolizer=none", process.pid)):
            self.heap("--by-class", *wrong, status=2)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.fails_with("has ended", process.pid)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
