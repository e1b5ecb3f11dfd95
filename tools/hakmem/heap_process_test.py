#!/usr/bin/env python3
"""`hakmem heap`, on processes that run and on their core files.

Usage: heap_process_test.py LIBRARY DEBUG_LIBRARY HAKMEM PROGRAM
"""
import fcntl
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import unittest

from planted_process import PlantedProcessTest

LIBRARY, DEBUG_LIBRARY, HAKMEM, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:5])
MIB = 1 << 20


class HeapProcessTest(PlantedProcessTest):
    def start(self, *command, library=LIBRARY, mean="16K"):
        return super().start(*command, library=library, HAKMEM_PROFILE_BYTES=mean,
                             HAKMEM_HEAP_PROFILE=str(self.folder / "at_exit"))

    def heap(self, *arguments, status=0, before=()):
        done = subprocess.run([*before, HAKMEM, "heap", *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def first_row(self, *arguments):
        lines = self.heap(*arguments).stdout.split("\n")
        return lines[next(i for i, line in enumerate(lines) if line.endswith("  place")) + 1]

    def profile(self, *arguments):
        profile, = json.loads(self.heap("--json", *arguments).stdout)["profiles"]
        return profile

    def fails_with(self, words, *arguments, before=()):
        done = self.heap(*arguments, status=1, before=before)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, "^hakmem heap: .*" + words)

    def test_finds_what_is_planted(self):
        for library in LIBRARY, DEBUG_LIBRARY:
            leak = self.start(PROGRAM, "hold", "leak", library=library)
            self.assertIn("PlantedLeak", self.first_row(leak.pid))
            self.assertIn("Churn", self.first_row("--by=allocated", leak.pid))
            peak = self.start(PROGRAM, "hold", "peak", library=library)
            self.assertIn("PlantedPeak", self.first_row("--by=peak", peak.pid))
            self.assertIn("Background", self.first_row(peak.pid))
            # They go on undisturbed.
            self.assertIsNone(leak.poll())

    def test_says_what_the_process_itself_and_its_core_say(self):
        process = self.start(PROGRAM, "hold", "leak")
        live = self.profile(process.pid)
        core = self.core_of(process)
        del live["resident_bytes"]
        self.assertEqual(self.profile(core), live)
        self.assertTrue(live["complete"])
        self.assertEqual(sum(site["live"]["bytes"] for site in live["sites"]), live["live"]["bytes"])
        process.communicate()
        at_exit = self.profile(self.folder / "at_exit")
        leaks = [next(site for site in profile["sites"] if "PlantedLeak" in json.dumps(site))
                 for profile in (live, at_exit)]
        self.assertEqual(leaks[0]["live"], leaks[1]["live"])
        names = [[frame["functions"] for frame in leak["stack"]] for leak in leaks]
        self.assertEqual(names[0], names[1])

    def test_a_library_that_is_mapped_as_a_file_too(self):
        # As programs do that find names for their own stacks. It comes to lie before the loaded library.
        process = self.start(sys.executable, "-c", """
import mmap, re, sys
maps = open("/proc/self/maps").read()
libc = re.search(r"/\\S*libc\\.so\\S*", maps)[0]
library = open(libc, "rb")
file = mmap.mmap(library.fileno(), 0, prot=mmap.PROT_READ)
blocks = [bytearray(1 << 20) for _ in range(8)]
print("ready", flush=True)
sys.stdin.read()""")
        with open("/proc/%d/maps" % process.pid) as maps:
            code = next(line for line in maps if "libc.so" in line and " r-xp " in line).split()
        begin, end = (int(number, 16) for number in code[0].split("-"))
        frames = [frame for site in self.profile("--no-fold", process.pid)["sites"]
                  for frame in site["stack"] if begin <= int(frame["address"], 16) < end]
        self.assertNotEqual(frames, [])
        for frame in frames:
            self.assertEqual(int(frame["offset"], 16), int(frame["address"], 16) - begin + int(code[2], 16))

    @unittest.skipUnless(platform.machine() == "x86_64", "has machine code of x86-64")
    def test_functions_that_the_process_has_compiled(self):
        # The file's name is the process's number, and the same number in another sandbox with this /tmp.
        folder = os.open("/tmp", os.O_RDONLY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        process = self.start(sys.executable, "-c", """
import ctypes, mmap, os, sys
# push rbp; mov rbp, rsp; mov rax, rdi; mov rdi, rsi; call rax; pop rbp; ret
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("55 4889e5 4889f8 4889f7 ffd0 5d c3"))
address = ctypes.addressof(ctypes.c_char.from_buffer(code))
with open("/tmp/perf-%d.map" % os.getpid(), "w") as names:
    names.write("%x %x JS:*compiledLeak /srv/leak.js:7:1\\n" % (address, 17))
call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(address)
allocate = ctypes.cast(ctypes.CDLL(None).malloc, ctypes.c_void_p)
blocks = [call(allocate, 8000) for _ in range(2000)]
print("ready", flush=True)
sys.stdin.read()""")
        self.addCleanup(os.unlink, "/tmp/perf-%d.map" % process.pid)
        saved = self.folder / "saved"
        profile = self.profile("--save=%s" % saved, process.pid)
        site, = (site for site in profile["sites"] if "compiledLeak" in json.dumps(site))
        self.assertLess(abs(site["live"]["bytes"] - 2000 * 8000), 6 * site["live"]["standard_error_bytes"])
        named, = (function for frame in site["stack"] for function in frame["functions"]
                  if function["name"] == "compiledLeak")
        self.assertEqual(named["place"], "/srv/leak.js:7:1")
        self.assertEqual(self.profile(saved), profile)

    def test_a_part_of_a_file_that_is_mapped_once_more(self):
        # As node does with its own functions: a call from there has the name that it has in the file.
        process = self.start(PROGRAM, "hold", "again")
        self.assertRegex(self.first_row(process.pid), "PlantedAgain")

    def test_growth_from_a_file_to_a_process(self):
        first = self.folder / "first"
        process = self.start(PROGRAM, "hold", "growth", str(first))
        self.assertIn("PlantedGrowth", self.first_row("--diff", first, process.pid))

    def test_what_is_counted_stands_first(self):
        process = self.start(PROGRAM, "hold", "leak")
        classes = json.loads(self.heap("--by-class", "--json", process.pid).stdout)
        profile = self.profile(process.pid)
        self.assertEqual(profile["counted"], {"blocks": classes["all"]["live_blocks"],
                                              "bytes": classes["all"]["live_bytes"]})
        self.assertGreater(profile["resident_bytes"], 16 * MIB)
        self.assertRegex(self.heap(process.pid).stdout, r"^\S+: \S+ MiB live in \S+ blocks, counted\n  by samples: ")

    def test_exports(self):
        process = self.start(PROGRAM, "hold", "leak")
        folded, pprof = self.folder / "folded", self.folder / "pprof"
        self.heap("--folded=%s" % folded, "--pprof=%s" % pprof, process.pid)
        self.assertIn("PlantedLeak", folded.read_text())
        self.assertGreater(pprof.stat().st_size, 0)

    def test_a_process_that_allocates_meanwhile(self):
        process = self.start(PROGRAM, "churn", "leak", mean="64")
        for _ in range(10):
            profile = self.profile(process.pid)
            leak = next(site for site in profile["sites"] if "PlantedLeak" in json.dumps(site))
            self.assertLess(abs(leak["live"]["bytes"] - 16 * MIB), MIB)

    def test_a_process_that_was_stopped_while_it_sampled(self):
        process = self.start(PROGRAM, "hold", "leak")
        self.gdb(process, "set *(unsigned long*)((unsigned long*)&hakmem_heap_tables)[5] += 1")
        self.assertIn("PlantedLeak", self.first_row(process.pid))

    def test_tables_larger_than_any(self):
        process = self.start(PROGRAM, "hold", "leak")
        # Each number is one that may be; together they are 16 GiB.
        self.gdb(process, "set ((unsigned*)&hakmem_heap_tables)[4] = 0x4000")
        self.gdb(process, "set ((unsigned*)&hakmem_heap_tables)[8] = 0x100000")
        self.fails_with("in a form that this command does not know", process.pid)

    def test_names_are_of_the_file_that_runs(self):
        program = self.folder / "planted_program"
        shutil.copy(PROGRAM, program)
        process = self.start(program, "hold", "leak")
        # Another build comes to its path, with other names at its addresses.
        content = bytearray(program.read_bytes().replace(b"PlantedLeak", b"AnotherName"))
        build_id = struct.pack("3I", 4, 20, 3) + b"GNU\0"
        if build_id in content:
            content[content.index(build_id) + len(build_id)] ^= 0xff
        other = self.folder / "other"
        other.write_bytes(content)
        other.replace(program)
        text = self.heap(process.pid).stdout
        self.assertNotIn("AnotherName", text)
        with open("/proc/%d/maps" % process.pid, encoding="utf-8") as maps:
            mapping = next(line.split()[0] for line in maps if "planted_program" in line)
        # What is not there any more by its path, only some may still open.
        if os.access("/proc/%d/map_files/%s" % (process.pid, mapping), os.R_OK):
            self.assertIn("PlantedLeak", text)

    def test_says_what_is_wrong_with_a_process(self):
        hold = [PROGRAM, "hold", "leak"]
        process = self.start(*hold)
        if os.geteuid() == 0 and shutil.which("setpriv"):
            self.fails_with("may not be read: it takes CAP_SYS_PTRACE", process.pid,
                            before=("setpriv", "--bounding-set=-all", "--inh-caps=-all"))
        self.fails_with("there is no process", 2 ** 30)
        self.fails_with("there is no hakmem in process", self.start(*hold, library=None).pid)
        self.fails_with("started with HAKMEM_PROFILE_BYTES=0", self.start(*hold, mean="0").pid)
        # Killed, and not yet waited for.
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.fails_with("has ended, or is the kernel's", process.pid)

    def test_a_core_whose_library_was_replaced(self):
        library = self.folder / "libhakmem.so"
        shutil.copy(LIBRARY, library)
        process = self.start(PROGRAM, "hold", "leak", library=str(library))
        with open("/proc/%d/maps" % process.pid, encoding="utf-8") as maps:
            beginning = next(int(line.split("-")[0], 16) for line in maps if "libhakmem" in line)
        core = self.core_of(process)
        # As the kernel writes it: of what nobody writes to, its constants among it, the first page alone.
        content = bytearray(core.read_bytes())
        first, count = struct.unpack_from("<Q", content, 32)[0], struct.unpack_from("<H", content, 56)[0]
        for at in range(first, first + 56 * count, 56):
            if struct.unpack_from("<Q", content, at + 16)[0] == beginning:
                struct.pack_into("<Q", content, at + 32, 4096)
        core.write_bytes(content)
        self.assertIn("PlantedLeak", self.first_row(core))
        library.unlink()
        shutil.copy(DEBUG_LIBRARY, library)
        self.fails_with("libhakmem.so is not here as the build that the core file is of", "--by-class", core)

    def test_a_core_with_more_segments_than_its_header_can_say(self):
        core = self.core_of(self.start(PROGRAM, "hold", "leak"))
        content = bytearray(core.read_bytes())
        first, count = struct.unpack_from("<Q", content, 32)[0], struct.unpack_from("<H", content, 56)[0]
        segments = bytes(56 << 16) + content[first:first + 56 * count]
        # PN_XNUM: the number is in the first section.
        struct.pack_into("<2Q", content, 32, len(content), len(content) + len(segments))
        struct.pack_into("<3H", content, 56, 0xffff, 64, 1)
        content += segments + struct.pack("<2I4Q2I2Q", 0, 0, 0, 0, 0, 0, 0, (1 << 16) + count, 0, 0)
        large = self.folder / "large"
        large.write_bytes(content)
        self.assertEqual(self.profile(large), self.profile(core))

    def test_says_what_is_wrong_with_a_core(self):
        core = self.core_of(self.start(PROGRAM, "hold", "leak"))
        content = core.read_bytes()
        damaged = self.folder / "damaged"
        for part in (50, 2):
            damaged.write_bytes(content[:len(content) // part])
            self.fails_with("cut off", damaged)
        damaged.write_bytes(content.replace(b"hakheap\0" + struct.pack("I", 1), b"hakheap\0" + struct.pack("I", 9)))
        self.fails_with("in a form that this command does not know", damaged)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
