#!/usr/bin/env python3
"""`hakmem stats`, on processes that run and on their core files.

Usage: stats_test.py HAKMEM PROGRAM LIBRARY...
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

from openmetrics_text import parse_openmetrics
from planted_process import PlantedProcessTest

HAKMEM, PROGRAM, *LIBRARIES = (os.path.abspath(path) for path in sys.argv[1:])
MIB = 1 << 20
PAGE_KEYS = ("block_resident_bytes", "table_resident_bytes", "huge_page_bytes")
OTHER_PART_KEYS = ("live_block_bytes", "hole_bytes", "untouched_bytes", "unowned_resident_bytes",
                   "stack_resident_bytes", "file_resident_bytes", "other_resident_bytes")
ROUTES = ("tiny", "pool", "span", "huge")
# As in hakmem_statistics, after the routes.
KEYS = ("remote_frees", "reallocs_in_place", "reallocs_moved", "failures", "mapped_bytes", "peak_mapped_bytes",
        "metadata_bytes", "granted_bytes", "cached_bytes", "map_calls", "unmap_calls", "purge_calls", "move_calls",
        "heaps_created", "heaps_abandoned", "refills_from_partial_slabs", "refills_from_empty_slabs", "heaps_adopted",
        "slabs_from_kept_units", "slabs_from_clean_units", "slabs_from_new_frames", "misuses")
GAUGES = {"mapped_bytes", "peak_mapped_bytes", "metadata_bytes", "granted_bytes", "cached_bytes", "heaps_abandoned"}


class StatsTest(PlantedProcessTest):
    def start(self, *command, library=LIBRARIES[0], **options):
        return super().start(*command, library=library, **options)

    def stats(self, *arguments, status=0, before=()):
        done = subprocess.run([*before, HAKMEM, "stats", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def report(self, *arguments):
        return json.loads(self.stats("--json", *arguments).stdout)

    def fails_with(self, words, *arguments, before=()):
        done = self.stats(*arguments, status=1, before=before)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, "^hakmem stats: .*" + words)

    def test_a_process_that_calls_its_variant_anything(self):
        process = self.start(PROGRAM, "hold", "leak")
        for index, byte in enumerate(b'"\x1b'):
            self.gdb(process, "set *(char*)(((unsigned long*)&hakmem_statistics_tables)[11] + %d) = %d" % (index, byte))
        self.assertEqual(self.report(process.pid)["variant"], "??lease")
        self.assertIn("??lease", self.stats(process.pid).stdout)

    def test_a_pipe_in_the_place_of_a_mapped_file(self):
        path = self.folder / "mapped"
        path.write_bytes(bytes(4096))
        process = self.start(sys.executable, "-c", """
import mmap, os, sys
file = open(sys.argv[1], "rb")
mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
os.unlink(sys.argv[1])
os.mkfifo(sys.argv[1] + " (deleted)")
print("ready", flush=True)
sys.stdin.read()""", str(path), library="")
        self.fails_with("there is no hakmem", process.pid)

    def test_a_pipe_that_takes_a_mapped_files_place_again_and_again(self):
        process = self.start(sys.executable, "-c", """
import ctypes, mmap, os, sys
os.chdir(sys.argv[1])
mappings = []
for i in range(100):
    with open("f%d" % i, "wb+") as file:
        file.write(bytes(4096))
        file.flush()
        mappings.append(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
    os.mkfifo("p%d" % i)
print("ready", flush=True)
exchange = ctypes.CDLL(None).renameat2
names = [(b"f%d" % i, b"p%d" % i) for i in range(100)]
while True:
    for one, other in names:
        exchange(-100, one, -100, other, 2)""", str(self.folder), library="")
        self.addCleanup(process.kill)
        for _ in range(50):
            self.fails_with("there is no hakmem", process.pid)

    def test_tells_what_the_process_itself_tells(self):
        self.assertEqual(len(LIBRARIES), 4)
        for library in LIBRARIES:
            process = self.start(PROGRAM, "hold", "mixed", library=library)
            own = [int(word) for word in process.stdout.readline().split()]
            self.assertEqual(len(own), 2 * len(ROUTES) + len(KEYS))
            report = self.report(process.pid)
            self.assertEqual([report["routes"][route][key] for route in ROUTES for key in ("allocations", "bytes")],
                             own[:2 * len(ROUTES)], library)
            numbers = dict(zip(KEYS, own[2 * len(ROUTES):]))
            if report["variant"] == "debug":
                # The histories of blocks are not among what is told to others.
                self.assertGreater(numbers["metadata_bytes"], report["metadata_bytes"])
                numbers["metadata_bytes"] = report["metadata_bytes"]
            self.assertEqual({key: report[key] for key in KEYS}, numbers, library)
            for route in ROUTES:
                self.assertGreater(report["routes"][route]["allocations"], 0)
            self.assertGreater(report["remote_frees"], 0)
            self.assertEqual((report["schema"], report["version"], report["pid"], report["program"]),
                             ("hakmem-statistics", 1, process.pid, "planted_program"))
            self.assertIn(report["variant"], library if report["variant"] != "release" else "release")
            self.assertGreater(report["resident_bytes"], 0)

    def test_a_core_file_says_the_same(self):
        process = self.start(PROGRAM, "hold", "leak")
        live = self.report(process.pid)
        del live["resident_bytes"]
        self.assertEqual(self.report(self.core_of(process)), live)

    def test_pages(self):
        process = self.start(PROGRAM, "hold", "leak", HAKMEM_HUGE_PAGES="off")
        report = self.report("--pages", process.pid)
        blocks, tables, huge = PAGE_KEYS
        # Each of the 16 MiB is written: they are there, and little is that nobody has.
        self.assertGreater(report[blocks], 16 * MIB)
        self.assertLessEqual(report[blocks], report["granted_bytes"] + report["cached_bytes"])
        self.assertGreater(report[tables], 0)
        self.assertLess(report[tables], report["metadata_bytes"] + MIB)
        self.assertLess(report[blocks] + report[tables], report["resident_bytes"])
        self.assertEqual(self.huge_page_bytes(process), report[huge])
        told = self.stats("--pages", "--openmetrics", process.pid).stdout
        samples = parse_openmetrics(told)
        who = 'pid="%d",program="planted_program"' % process.pid
        keys = (*PAGE_KEYS, *OTHER_PART_KEYS, "cached_bytes", "resident_bytes")
        self.assertEqual([samples["hakmem_" + key, who] for key in keys], [report[key] for key in keys])
        self.assertFalse({*PAGE_KEYS, *OTHER_PART_KEYS} & set(self.report(process.pid)))
        self.fails_with("is a core file", "--pages", self.core_of(process))

    def rollup_bytes(self, process):
        """Its memory, as the kernel counts it."""
        with open("/proc/%d/smaps_rollup" % process.pid) as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith("Rss:"))

    def test_where_the_resident_memory_is(self):
        for library in LIBRARIES:
            process = self.start(sys.executable, "-c", """
import ctypes, mmap, sys
allocate = ctypes.CDLL(None).malloc
allocate.restype = ctypes.c_void_p
touched, untouched, huge = map(allocate, map(ctypes.c_size_t, (24 << 20, 48 << 20, 300 << 20)))
ctypes.memset(ctypes.c_void_p(touched), 1, 24 << 20)
others = mmap.mmap(-1, 12 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
others.write(bytes(12 << 20))
print("ready", flush=True)
sys.stdin.read()""", library=library, HAKMEM_HUGE_PAGES="off")
            # The kernel may take pages of files back meanwhile.
            resident = None
            while resident != self.rollup_bytes(process):
                resident = self.rollup_bytes(process)
                report = self.report("--pages", process.pid)
            self.assertEqual(report["resident_bytes"], resident, library)
            blocks = (report["live_block_bytes"] + report["hole_bytes"] + report["cached_bytes"] +
                      report["unowned_resident_bytes"] - report["untouched_bytes"])
            self.assertEqual(blocks, report["block_resident_bytes"])
            self.assertEqual(blocks + sum(report[key + "_resident_bytes"] for key in ("table", "stack", "file", "other")),
                             report["resident_bytes"])
            self.assertEqual(report["live_block_bytes"] + report["hole_bytes"], report["granted_bytes"])
            self.assertGreater(report["live_block_bytes"], 372 * MIB)
            self.assertGreater(report["untouched_bytes"], 340 * MIB)
            self.assertGreater(report["block_resident_bytes"], 24 * MIB)
            self.assertGreaterEqual(report["other_resident_bytes"], 12 * MIB)
            # The stack of the only thread, which sleeps.
            self.assertEqual(report["stack_resident_bytes"], self.stack_bytes(process))
            self.assertGreater(report["file_resident_bytes"], MIB)
            text = self.stats(process.pid).stdout
            numbers = [int(number) for number in
                       re.findall(r"^  .{24} *(-?\d+) bytes, ", text.partition("where the resident memory is\n")[2], re.M)]
            total = numbers.index(report["resident_bytes"])
            self.assertEqual(sum(numbers[:total]), numbers[total], text)
            self.assertNotIn("where the resident", self.stats(self.core_of(process)).stdout)

    def stack_bytes(self, process):
        with open("/proc/%d/smaps" % process.pid) as file:
            of_stack = file.read().partition("[stack]")[2]
        return int(re.search(r"^Rss: +(\d+) kB", of_stack, re.M)[1]) << 10

    def test_stacks_of_threads(self):
        process = self.start(sys.executable, "-c", """
import ctypes, sys, threading
libc = ctypes.CDLL(None)
barrier = threading.Barrier(2)
def descend(depth):
    if depth:
        return descend(depth - 1)
    barrier.wait()
    libc.pause()
threading.stack_size(1 << 24)
threading.Thread(target=descend, args=(400,), daemon=True).start()
barrier.wait()
print("ready", flush=True)
sys.stdin.read()""")
        # It may not sleep yet; the test's time limit ends what never does.
        while self.report("--pages", process.pid)["stack_resident_bytes"] <= self.stack_bytes(process):
            pass

    def huge_page_bytes(self, process):
        """Of the whole process, as the kernel counts them."""
        with open("/proc/%d/smaps" % process.pid) as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith("AnonHugePages:"))

    def test_huge_pages(self):
        process = self.start(PROGRAM, "hold", "leak", HAKMEM_HUGE_PAGES="on")
        self.assertEqual(self.report("--pages", process.pid)["huge_page_bytes"], self.huge_page_bytes(process))
        with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
            if "[never]" not in file.read():
                self.assertGreater(self.huge_page_bytes(process), 8 * MIB)

    def test_text(self):
        process = self.start(PROGRAM, "hold", "leak")
        lines = self.stats(process.pid).stdout.splitlines()
        self.assertRegex(lines[0], r"^planted_program\[%d\], .* resident$" % process.pid)
        self.assertRegex(lines[1], r"^hakmem \d+\.\d+\.\d+ release$")
        self.assertRegex(lines[2], r"^  tiny +\d+ calls, ")

    def test_options(self):
        for library in LIBRARIES:
            process = self.start(PROGRAM, "hold", "leak", library=library, HAKMEM_DECAY_MS="77", HAKMEM_REPORT="/dev/null")
            options = self.report(process.pid)["options"]
            self.assertEqual(options["HAKMEM_DECAY_MS"], {"value": "77 milliseconds", "origin": "environment"})
            self.assertEqual(options["HAKMEM_REPORT"], {"value": "/dev/null", "origin": "environment"})
            self.assertEqual(options["HAKMEM_CONTROL"], {"value": "0", "origin": "default"})
            self.assertEqual("HAKMEM_LEAKS" in options, "debug" in library)
            lines = self.stats(process.pid).stdout.splitlines()
            self.assertEqual([line for line in lines if "HAKMEM_" in line],
                             ["  HAKMEM_DECAY_MS=77 milliseconds (environment)",
                              "  HAKMEM_GUARD_SAMPLE=0 allocations (environment)",
                              "  HAKMEM_REPORT=/dev/null (environment)"])

    def test_damaged_options(self):
        core = bytearray(self.core_of(self.start(PROGRAM, "hold", "leak")).read_bytes())
        places = [match.start() for match in re.finditer(b"hakopts\0", core)]
        self.assertTrue(places)
        for place in places:
            # Not the origins, which are the last.
            core[place + 16:place + 1900] = b"\xff" * (1900 - 16)
        damaged = self.folder / "damaged"
        damaged.write_bytes(core)
        options = self.report(damaged)["options"]
        self.assertIn("HAKMEM_DECAY_MS", options)
        # Neither a choice without a word nor a path without an end.
        self.assertNotIn("HAKMEM_HUGE_PAGES", options)
        self.assertNotIn("HAKMEM_STATS", options)

    def test_openmetrics(self):
        process = self.start(PROGRAM, "hold", "mixed")
        report = self.report(process.pid)
        text = self.stats("--openmetrics", process.pid).stdout
        samples = parse_openmetrics(text)
        who = 'pid="%d",program="planted_program"' % process.pid
        for route in ROUTES:
            labels = '%s,route="%s"' % (who, route)
            self.assertEqual(samples["hakmem_allocations_total", labels], report["routes"][route]["allocations"])
            self.assertEqual(samples["hakmem_allocated_bytes_total", labels], report["routes"][route]["bytes"])
        for key in KEYS:
            name = "hakmem_" + key + ("" if key in GAUGES else "_total"), who
            # Release does not count these.
            if key in ("reallocs_in_place", "reallocs_moved"):
                self.assertNotIn(name, samples)
            else:
                self.assertEqual(samples[name], report[key])
        self.assertGreater(samples["hakmem_resident_bytes", who], 0)
        try:
            from prometheus_client.openmetrics import parser
        except ImportError:
            return
        self.assertEqual(sum(len(family.samples) for family in parser.text_string_to_metric_families(text)), len(samples))

    def test_a_program_writes_the_same_openmetrics_itself(self):
        for library in LIBRARIES:
            written = self.folder / "written"
            with written.open("w") as stderr:
                process = self.start(PROGRAM, "measure", "mixed", library=library, stderr=stderr, HAKMEM_WARN_WEAKENED="0")
            process.stdout.readline()
            own = written.read_text()
            told = self.stats("--openmetrics", process.pid).stdout
            # Memory that the kernel counts may change; the histories of blocks are not told to others.
            changes = r"(hakmem_(?:resident%s)_bytes\{.*\}) \d+" % ("|metadata" if "debug" in library else "")
            self.assertEqual(re.sub(changes, r"\1 N", own), re.sub(changes, r"\1 N", told), library)
            self.assertEqual(parse_openmetrics(own).keys(), parse_openmetrics(told).keys())

    def test_a_process_whose_first_thread_has_ended(self):
        process = self.start(PROGRAM, "survive", "leak")
        report = self.report("--pages", process.pid)
        self.assertEqual((report["pid"], report["program"]), (process.pid, "planted_program"))
        self.assertGreater(report["routes"]["tiny"]["allocations"], 16 * MIB / 1024)
        self.assertGreater(report["resident_bytes"], 16 * MIB)
        self.assertGreater(report["block_resident_bytes"], 16 * MIB)

    def test_a_process_that_allocates_meanwhile(self):
        process = self.start(PROGRAM, "churn", "leak")
        calls = []
        for _ in range(20):
            report = self.report(process.pid)
            calls.append(report["routes"]["tiny"]["allocations"])
            self.assertLessEqual(report["granted_bytes"], report["mapped_bytes"])
        self.assertEqual(calls, sorted(calls))
        self.assertGreater(calls[-1], calls[0])

    def test_says_what_is_wrong(self):
        hold = [PROGRAM, "hold", "leak"]
        process = self.start(*hold)
        if os.geteuid() == 0 and shutil.which("setpriv"):
            self.fails_with("may not be read: it takes CAP_SYS_PTRACE", process.pid,
                            before=("setpriv", "--bounding-set=-all", "--inh-caps=-all"))
        self.fails_with("there is no process", 2 ** 30)
        self.fails_with("there is no hakmem in process", self.start(*hold, library=None).pid)
        core = self.core_of(process)
        content = core.read_bytes()
        damaged = self.folder / "damaged"
        damaged.write_bytes(content[:len(content) // 50])
        self.fails_with("cut off", damaged)
        damaged.write_bytes(content.replace(b"hakstat\0" + struct.pack("I", 2), b"hakstat\0" + struct.pack("I", 1)))
        self.fails_with("in a form that this command does not know; use the command that was built with that library", damaged)
        damaged.write_text("text")
        self.fails_with("neither a process's number nor a core file", damaged)
        os.mkfifo(self.folder / "pipe")
        self.fails_with("neither a process's number nor a core file", self.folder / "pipe")
        self.stats(status=2)
        self.stats("--json", "--openmetrics", process.pid, status=2)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.fails_with("has ended, or is the kernel's", process.pid)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
