#!/usr/bin/env python3
"""Tests of what tools/try.sh and tools/real_programs.sh find out."""
import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import loader_bindings
import program_file
import statistics_file
import try_report

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "real_programs"))
import run as real_programs  # noqa: E402


def record(program="a", pid=1, tiny=1):
    routes = {route: {"allocations": 0, "bytes": 0} for route in statistics_file.ROUTES}
    routes["tiny"] = {"allocations": tiny, "bytes": 16 * tiny}
    return json.dumps({"pid": pid, "program": program, "routes": routes, "map_calls": 2})


class FolderTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, text, mode=0o644):
        path = self.folder / name
        path.write_text(text)
        path.chmod(mode)
        return path


class LibraryTest(FolderTest):
    def test_has_a_name_that_can_be_preloaded(self):
        os.mkdir(self.folder / "there")
        copy = program_file.to_preload(self.write("my lib: new.so", "text"), self.folder / "there")
        self.assertEqual(copy, str(self.folder / "there/my_lib__new.so"))
        self.assertEqual(pathlib.Path(copy).read_text(), "text")


class StatisticsFileTest(FolderTest):
    def test_reads_each_line(self):
        path = self.write("s", record("a") + "\n" + record("b", tiny=5) + "\n")
        records = statistics_file.read(path)
        self.assertEqual([r["program"] for r in records], ["a", "b"])
        self.assertEqual(statistics_file.allocations(records[1]), 5)

    def test_no_file_is_no_record(self):
        self.assertEqual(statistics_file.read(self.folder / "none"), [])

    def test_passes_over_what_a_killed_process_began(self):
        for length in (1, 20, len(record()) - 1):
            path = self.write("s", record("a") + "\n" + record("b")[:length] + record("c") + "\n")
            self.assertEqual([r["program"] for r in statistics_file.read(path)], ["a", "c"])
            path = self.write("s", record("a") + "\n" + record("b")[:length])
            self.assertEqual([r["program"] for r in statistics_file.read(path)], ["a"])

    def test_names_the_line_that_is_wrong(self):
        for bad in ("{", '{"program": "a"}', '{"program": 1, "routes": {}}', "[]"):
            path = self.write("s", record() + "\n" + bad + "\n")
            with self.assertRaisesRegex(statistics_file.BadStatistics, "line 2"):
                statistics_file.read(path)


class BindingsTest(FolderTest):
    LINE = "     7:\tbinding file %s [0] to %s [0]: normal symbol `%s' [GLIBC_2.2.5]\n"

    def absorb(self, *lines):
        bindings = loader_bindings.Bindings(self.folder, "/x/libhakmem.so")
        self.write("bindings.4194305", "".join(self.LINE % line for line in lines))
        bindings.absorb()
        return bindings

    def test_all_on_hakmem(self):
        bindings = self.absorb(("/bin/a", "/x/libhakmem.so", "malloc"),
                               ("/lib/libc.so.6", "/x/libhakmem.so", "free"),
                               ("/bin/a", "/lib/libc.so.6", "printf"))
        self.assertEqual(bindings.users, {"/bin/a", "/lib/libc.so.6"})
        self.assertEqual(bindings.exceptions, [])
        self.assertEqual(bindings.processes, 1)
        self.assertEqual(os.listdir(self.folder), [])

    def test_another_allocator(self):
        bindings = self.absorb(("/bin/a", "/nowhere/libother.so", "malloc"),
                               ("/x/libhakmem.so", "/lib/libc.so.6", "malloc"))
        self.assertEqual(bindings.exceptions, [("/bin/a", "malloc", "/nowhere/libother.so")])

    def test_own_operators(self):
        bindings = self.absorb(("/bin/a", "/nowhere/b", "_Znwm"))
        self.assertEqual(bindings.exceptions, [])
        self.assertEqual(bindings.own_operators, ["/nowhere/b"])

    def test_a_program_that_stands_in_for_a_function(self):
        # /bin/sh uses malloc but has none.
        self.assertEqual(self.absorb(("/lib/b", "/bin/sh", "malloc")).exceptions, [])

    def test_a_real_process(self):
        bindings = loader_bindings.Bindings(self.folder, "libc.so.6")
        subprocess.run(["/bin/ls"], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, **bindings.environment))
        bindings.absorb(all_files=True)
        self.assertTrue(bindings.users)


class ProgramFileTest(FolderTest):
    def unsuitable(self, path, words, status):
        with self.assertRaisesRegex(program_file.Unsuitable, words) as caught:
            program_file.check(program_file.find(str(path)))
        self.assertEqual(caught.exception.status, status)

    def test_programs_and_scripts(self):
        program_file.check(program_file.find("ls"))
        program_file.check(str(self.write("a", "#!/bin/sh\n", 0o755)))
        program_file.check(str(self.write("b", "#!/usr/bin/env -S A=b python3\n", 0o755)))

    def test_what_cannot_be_run(self):
        self.unsuitable("no-such-program", "no program", 127)
        self.unsuitable(self.folder / "none", "no program", 127)
        self.unsuitable(self.folder, "folder", 126)
        self.unsuitable(self.write("a", "text"), "cannot be executed", 126)
        self.unsuitable(self.write("b", "text", 0o755), "neither", 126)
        self.unsuitable(self.write("c", "#!/none/sh\n", 0o755), "interpreter /none/sh", 127)

    def elf(self, machine=None, interpreter=True):
        header = bytearray(120)
        header[:6] = b"\x7fELF\x02\x01"
        header[18:20] = (machine or program_file.MACHINES[os.uname().machine]).to_bytes(2, "little")
        header[32:40] = (64).to_bytes(8, "little")
        header[54:58] = (56).to_bytes(2, "little") + (1).to_bytes(2, "little")
        header[64] = program_file.PT_INTERP if interpreter else 1
        path = self.folder / "elf"
        path.write_bytes(header)
        path.chmod(0o755)
        return path

    def test_elf(self):
        program_file.check(str(self.elf()))
        self.unsuitable(self.elf(interpreter=False), "statically linked", 2)
        self.unsuitable(self.elf(machine=3), "another kind of processor", 2)


class CallsTest(FolderTest):
    def test_strace_summary(self):
        path = self.write("calls", (
            "% time     seconds  usecs/call     calls    errors syscall\n"
            "------ ----------- ----------- --------- --------- ----------------\n"
            "  0.00    0.000000           0        30         2 mmap\n"
            "  0.00    0.000000           0         3           brk\n"
            "------ ----------- ----------- --------- --------- ----------------\n"
            "100.00    0.000000           0        33         2 total\n"))
        self.assertEqual(try_report.count_calls(path), 33)


class RunnerTest(FolderTest):
    def test_reads_what_measure_writes(self):
        measure = self.folder / "measure"
        subprocess.run(["clang++-19", "-std=c++20", "-I.", "-o", str(measure), "tools/measure/measure.cc"], check=True,
                       cwd=pathlib.Path(__file__).resolve().parent.parent)
        runner = try_report.Runner(str(measure), "", ["/bin/sh", "-c", "exit 3"], self.folder, example=False)
        usage = runner.run({})
        self.assertEqual((usage.status, usage.signal, usage.ending), (3, 0, "exit status 3"))
        self.assertGreater(usage.peak_kib, 0)


# In a shell.
FOR_EVER = "tail -f /dev/null"


class Impatient(real_programs.Clock):
    """To which the first wait is too long at once; it keeps how long each might have been."""

    def __init__(self):
        self.waits = []

    def end(self, pids, seconds):
        self.waits.append(seconds)
        return len(self.waits) > 1 and super().end(pids, None)


class RealProgramsTest(FolderTest):
    """The library is any that loads: the scripts write the statistics."""

    LIBRARY = pathlib.Path("/lib/%s-linux-gnu/libm.so.6" % os.uname().machine)
    TELL = 'if [[ -n ${HAKMEM_STATS-} ]]; then echo \'%s\' >> "$HAKMEM_STATS"; fi\n' % record("a")

    def run_script(self, text, serves="a", cache=None, groups=None, patience=None):
        script = self.write("name.sh", "# title: t\n# serves: %s\n# seconds: 1\n# needs: bash\n%s" % (serves, text))
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        return real_programs.run_program(real_programs.load_program(script), folder, self.LIBRARY,
                                         real_programs.Cache(cache, self.LIBRARY),
                                         groups or real_programs.Groups(), patience)

    def fails(self, words, text, **kwargs):
        with self.assertRaisesRegex(real_programs.Failure, words):
            self.run_script(text, **kwargs)

    def test_what_runs_is_ended(self):
        groups = real_programs.Groups()
        started = self.folder / "started"
        os.mkfifo(started)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            run = pool.submit(self.run_script, "echo x > '%s'; %s" % (started, FOR_EVER), groups=groups)
            self.assertEqual(started.read_text(), "x\n")
            groups.close()
            with self.assertRaisesRegex(real_programs.Failure, "exit status -15"):
                run.result()
        self.fails("interrupted", "echo x", groups=groups)

    def test_same_output_passes(self):
        self.assertIn("1 processes", self.run_script("echo x\n" + self.TELL))

    def test_differences_fail(self):
        self.fails("other output", "echo x ${LD_PRELOAD-}\n" + self.TELL)
        self.fails("exit status 3 on hakmem", "echo x; [[ -z ${LD_PRELOAD-} ]] || exit 3")
        self.fails("exit status 1 on libc's malloc already", "echo x; exit 1")
        self.fails("says nothing", "true")
        self.fails("standard error has: hakmem: fatal",
                   "echo x; [[ -z ${LD_PRELOAD-} ]] || echo hakmem: fatal: x >&2\n" + self.TELL)

    def test_what_hangs_is_ended(self):
        clock = Impatient()
        self.fails("not done after 7 s on libc's malloc already", "echo x; " + FOR_EVER, patience=7,
                   groups=real_programs.Groups(clock))
        # One more wait of 3 s for each process that was being started meanwhile.
        self.assertEqual((clock.waits[0], set(clock.waits[1:])), (7, {3}))

    def test_what_will_not_end_is_ended(self):
        ready = self.folder / "ready"
        os.mkfifo(ready)
        process = subprocess.Popen(["/bin/sh", "-c", "trap '' TERM; echo x > '%s'; %s" % (ready, FOR_EVER)],
                                   start_new_session=True)
        self.assertEqual(ready.read_text(), "x\n")
        clock = Impatient()
        real_programs.end_group(process.pid, clock)
        self.assertEqual((process.wait(), set(clock.waits)), (-signal.SIGKILL, {3}))
        self.assertGreater(len(clock.waits), 1)

    def test_silent_libc_fails(self):
        self.fails("no process 'a' told", "echo x")
        self.fails("no process 'b' told", "echo x\n" + self.TELL, serves="a b")
        self.fails("'a' allocated nothing", "echo x\n" + self.TELL.replace(record("a"), record("a", tiny=0)))

    def test_signals_act_though_the_caller_ignores_them(self):
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            self.fails("exit status -2 on libc's malloc already", "kill -INT $$; echo x")
        finally:
            signal.signal(signal.SIGINT, before)

    def test_leftovers_are_ended(self):
        self.run_script(FOR_EVER + ' & echo $! > "$HOME/../pid"; echo x\n' + self.TELL)
        pid, = [path.read_text().strip() for path in self.folder.glob("*/pid")]
        state = pathlib.Path("/proc", pid, "stat")
        # Without an init that reaps it, it stays as a zombie.
        self.assertTrue(not state.exists() or " Z " in state.read_text())

    def test_passes_are_kept_and_failures_are_not(self):
        cache = self.folder / "cache"
        good = "echo x\n" + self.TELL
        self.assertIn("libc as kept", self.run_script(good, cache=cache) + self._second(good, cache))
        self.assertEqual(self.run_script(good, cache=cache), "unchanged")
        for _ in range(2):
            self.fails("exit status 3", "echo x; [[ -z ${LD_PRELOAD-} ]] || exit 3", cache=cache)

    def _second(self, good, cache):
        for path in cache.glob("passed-*"):
            path.unlink()
        return self.run_script(good, cache=cache)


if __name__ == "__main__":
    unittest.main()
