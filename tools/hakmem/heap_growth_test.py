#!/usr/bin/env python3
"""What has grown, of processes that run: `hakmem heap --save`, `--diff`, `--for`, and `hakmem watch`.

Usage: heap_growth_test.py LIBRARY HAKMEM PROGRAM PAUSED_SLEEP
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

from pauses import Pauses
from planted_process import PlantedProcessTest

LIBRARY, HAKMEM, PROGRAM, PAUSED_SLEEP = (os.path.abspath(path) for path in sys.argv[1:5])
MIB = 1 << 20


class HeapGrowthTest(PlantedProcessTest):
    def start(self, *command):
        return super().start(PROGRAM, *command, library=LIBRARY, HAKMEM_PROFILE_BYTES="16K")

    def growing(self):
        """A process that waits to grow, and what has it do so: by 8 MiB of its place Step."""
        process = self.start("hold", "step")
        process.stdout.readline()  # its statistics

        def grow():
            process.stdin.write("g")
            process.stdin.flush()
            self.assertEqual(process.stdout.readline(), "grown\n")
        return process, grow

    def begin_anew(self, process):
        process.stdin.write("x")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "ready\n")
        process.stdout.readline()  # its statistics

    def hakmem(self, *arguments, status=0):
        done = subprocess.run([HAKMEM, *map(str, arguments)], capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def growth(self, *arguments):
        return json.loads(self.hakmem("heap", "--json", *arguments).stdout)

    def paused(self, *arguments):
        """A command, and its pauses."""
        pauses = Pauses(PAUSED_SLEEP)
        command = pauses.start([HAKMEM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        # Last first.
        self.addCleanup(pauses.close)
        self.addCleanup(command.communicate)
        self.addCleanup(command.kill)
        return command, pauses

    def is_of_the_step(self, growth):
        """It is about 8 MiB, sure, and nothing else has grown as much."""
        first = growth["sites"][0]
        self.assertIn("PlantedStep", json.dumps(first["stack"]))
        self.assertTrue(first["sure"])
        self.assertLess(first["standard_error_bytes"], MIB)
        # Some 512 samples, so an error of 0.37 MiB: one in 350 is over 3 of these.
        self.assertLess(abs(first["growth_bytes"] - 8 * MIB), 6 * first["standard_error_bytes"])

    def test_a_saved_profile_is_the_profile(self):
        process, _ = self.growing()
        saved = self.folder / "saved"
        live, = self.growth("--save=%s" % saved, process.pid)["profiles"]
        again, = self.growth(saved)["profiles"]
        self.assertEqual(again, live)

    def test_growth_since_a_saved_profile(self):
        process, grow = self.growing()
        first, second = self.folder / "first", self.folder / "second"
        self.hakmem("heap", "--save=%s" % first, process.pid)
        grow()
        growth = self.growth("--diff", first, process.pid)
        self.is_of_the_step(growth)
        self.assertGreater(growth["seconds"], 0)
        self.hakmem("heap", "--save=%s" % second, process.pid)
        self.is_of_the_step(self.growth("--diff", first, second))
        self.hakmem("heap", "--pprof=%s" % (self.folder / "pprof"), process.pid)
        growth = self.growth("--diff", first, self.folder / "pprof")["sites"]
        self.assertIn("PlantedStep", json.dumps(growth[0]["stack"]))
        # What it does not tell apart is as it was.
        self.assertEqual([site["growth_bytes"] for site in growth],
                         [site["growth_bytes"] for site in self.growth("--diff", first, second)["sites"]])
        self.assertRegex(self.hakmem("heap", "--diff", first, second).stdout.split("\n")[0], r"^\+.* live, counted in .*, \+.* an hour: ")

    def test_the_earlier_one_comes_first(self):
        process, grow = self.growing()
        first = self.folder / "first"
        self.hakmem("heap", "--save=%s" % first, process.pid)
        grow()
        self.assertEqual(self.hakmem("heap", "--diff", first, process.pid).stderr, "")
        done = self.hakmem("heap", "--json", "--diff", process.pid, first)
        self.assertRegex(done.stderr, "^hakmem heap: by their times %d is later than %s: growth is shown as shrinkage"
                         % (process.pid, first))
        self.assertLess(json.loads(done.stdout)["seconds"], 0)

    def test_what_is_named_twice_counts_once(self):
        process, _ = self.growing()
        saved, link = self.folder / "saved", self.folder / "link"
        self.hakmem("heap", "--save=%s" % saved, process.pid)
        link.symlink_to(saved)
        for names in ((process.pid, process.pid), (saved, saved), (saved, link)):
            done = self.hakmem("heap", "--json", *names)
            self.assertEqual(len(json.loads(done.stdout)["profiles"]), 1)
            self.assertIn("%s was there before, and counts once\n" % names[1], done.stderr)
        self.assertEqual(len(self.growth(process.pid, saved)["profiles"]), 2)

    def test_growth_from_now_on(self):
        process, grow = self.growing()
        for end in (lambda command, pauses: pauses.go(),
                    lambda command, pauses: command.send_signal(signal.SIGINT)):
            command, pauses = self.paused("heap", "--json", "--for=1h", process.pid)
            self.assertTrue(pauses.wait())
            grow()
            end(command, pauses)
            out, errors = command.communicate()
            self.assertEqual(command.returncode, 0, errors)
            self.is_of_the_step(json.loads(out))

    def test_a_process_that_ends_has_not_shrunk(self):
        process, grow = self.growing()
        other, _ = self.growing()
        command, pauses = self.paused("heap", "--json", "--for=1h", process.pid, other.pid)
        self.assertTrue(pauses.wait())
        grow()
        other.kill()
        other.wait()
        pauses.go()
        out, errors = command.communicate()
        self.assertIn("there is no process %d" % other.pid, errors)
        self.assertEqual(command.returncode, 1)
        self.is_of_the_step(json.loads(out))
        self.assertGreater(min(site["growth_bytes"] for site in json.loads(out)["sites"]), -MIB)

    def test_what_has_begun_anew_has_not_grown(self):
        process, grow = self.growing()
        folder = self.folder / "watched"
        command, pauses = self.paused("watch", "--keep=3", process.pid, folder)
        self.assertTrue(pauses.wait())
        old, = folder.iterdir()
        grow()
        self.begin_anew(process)
        pauses.go()
        self.assertTrue(pauses.wait())
        new, = set(folder.iterdir()) - {old}
        # Its number is all that both programs have in common.
        self.assertIn("no two profiles of one process", self.hakmem("heap", "--diff", folder, status=1).stderr)
        remarks, = self.growth("--diff", old, new)["remarks"]
        self.assertIn("has begun anew", remarks)
        grow()
        for _ in range(3):
            pauses.go()
            self.assertTrue(pauses.wait())
        kept = sorted(folder.iterdir())
        self.assertEqual(len(kept), 3)
        self.assertEqual(kept[0], new)
        growth = self.growth("--diff", folder)
        self.is_of_the_step(growth)
        self.assertEqual(growth["remarks"], [])

    def test_watch_keeps_the_first_and_the_newest(self):
        process, grow = self.growing()
        folder = self.folder / "made" / "here"
        command, pauses = self.paused("watch", "--keep=3", process.pid, folder)
        self.assertTrue(pauses.wait())
        first, = folder.iterdir()
        for _ in range(4):
            pauses.go()
            self.assertTrue(pauses.wait())
        kept = sorted(folder.iterdir())
        self.assertEqual(len(kept), 3)
        self.assertEqual(kept[0], first)
        grow()
        pauses.go()
        self.assertTrue(pauses.wait())
        command.send_signal(signal.SIGTERM)
        command.communicate()
        self.assertEqual(command.returncode, 0)
        self.is_of_the_step(self.growth("--diff", folder))

    def test_watch_ends_with_the_process(self):
        process, _ = self.growing()
        command, pauses = self.paused("watch", process.pid, self.folder)
        self.assertTrue(pauses.wait())
        process.kill()
        process.wait()
        pauses.go()
        self.assertIn("there is no process", command.communicate()[1])
        self.assertEqual(command.returncode, 0)
        self.hakmem("watch", process.pid, self.folder, status=1)

    def test_watch_fails_where_the_process_goes_on_without_hakmem(self):
        process = super().start("sh", "-c", "echo ready; read line; unset LD_PRELOAD; exec cat", library=LIBRARY)
        command, pauses = self.paused("watch", process.pid, self.folder)
        self.assertTrue(pauses.wait())
        process.stdin.write("go\nit is cat\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), "it is cat\n")
        pauses.go()
        command.communicate()
        self.assertEqual(command.returncode, 1)

    def test_since_takes_the_profile_of_that_time(self):
        process, grow = self.growing()
        hour = 3600 * 1000
        for number, hours in enumerate((1, 3, 4)):
            self.hakmem("heap", "--save=%s" % (self.folder / ("%d.%d.heap" % (process.pid, hours * hour))), process.pid)
            if number == 1:
                grow()
        self.is_of_the_step(self.growth("--diff", "--since=1h", self.folder))
        self.is_of_the_step(self.growth("--diff", self.folder))
        after = self.folder / ("%d.%d.heap" % (process.pid, 5 * hour))
        after.write_bytes((self.folder / ("%d.%d.heap" % (process.pid, 4 * hour))).read_bytes())
        self.assertEqual(self.growth("--diff", "--since=1h", self.folder)["sites"], [])

    def test_processes_by_name(self):
        program = self.folder / ("name-of-%d-is-long" % os.getpid())
        shutil.copy(PROGRAM, program)
        named = program.name
        start = super().start
        other = start(program, "hold", "leak", library=None)
        # The kernel tells the first 15 letters, which are the same.
        start(shutil.copy(PROGRAM, self.folder / (named[:15] + "-too")), "hold", "leak", library=LIBRARY)
        self.hakmem("stats", named, status=1)
        first = start(program, "hold", "leak", library=LIBRARY)
        stats = json.loads(self.hakmem("stats", "--json", named).stdout)
        self.assertEqual((stats["pid"], stats["program"]), (first.pid, named))
        self.assertIn("process %d" % first.pid, self.hakmem("purge", named, status=1).stderr)
        second = start(program, "hold", "leak", library=LIBRARY)
        both = {first.pid, second.pid}
        done = self.hakmem("heap", "--json", named)
        self.assertEqual({profile["pid"] for profile in json.loads(done.stdout)["profiles"]}, both)
        self.assertIn("shows all processes of that name: %s" % ", ".join(map(str, sorted(both))), done.stderr)
        for flag in ("--diff", "--by-class"):
            self.assertIn("several processes named", self.hakmem("heap", flag, named, status=2).stderr)
        errors = self.hakmem("stats", named, status=2).stderr
        self.assertEqual({int(word) for word in re.findall(r"\b\d+(?=[,;])", errors)}, both)
        self.assertNotIn(str(other.pid), errors)
        # A program is often started in its own folder.
        saved = self.hakmem("heap", "--save=%s" % (self.folder / "profile"), second.pid)
        self.assertEqual(saved.returncode, 0)
        (self.folder / "profile").rename(program)
        for name, pids in ((named, both), ("./" + named, {second.pid})):
            done = subprocess.run([HAKMEM, "heap", "--json", name], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual({profile["pid"] for profile in json.loads(done.stdout)["profiles"]}, pids)

    def test_a_name_that_nobody_has(self):
        for command in (("watch", "no-such", self.folder), ("heap", "no-such"), ("heap", "--for=1s", "no-such"),
                        ("stats", "no-such"), ("purge", "no-such"), ("failures", "no-such")):
            self.assertRegex(self.hakmem(*command, status=1).stderr, "no-such.* (on hakmem that may be read)")

    def test_what_was_killed_leaves_its_last_profile(self):
        for kill in (True, False):
            pauses = Pauses(PAUSED_SLEEP)
            self.addCleanup(pauses.close)
            trace = self.folder / "trace.jsonl"
            command = pauses.start([HAKMEM, "run", "--keep-last", "--library=" + LIBRARY, "--trace=%s" % trace,
                                    "--option=PROFILE_BYTES=16K", "--", PROGRAM, "hold", "leak"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.addCleanup(command.kill)
            self.assertEqual(command.stdout.readline(), "ready\n")
            self.assertTrue(pauses.wait())
            pauses.go()
            self.assertTrue(pauses.wait())
            child, = pathlib.Path("/proc/%d/task/%d/children" % (command.pid, command.pid)).read_text().split()
            if kill:
                os.kill(int(child), signal.SIGKILL)
            errors = command.communicate()[1]
            heap = self.folder / "trace.jsonl.heap"
            self.assertEqual(heap.exists(), kill, errors)
            self.assertEqual("hakmem heap %s" % heap in errors, kill)
            self.assertEqual(command.returncode, -signal.SIGKILL if kill else 0)
            if not kill:
                continue
            profile, = self.growth(heap)["profiles"]
            self.assertEqual(profile["pid"], int(child))
            self.assertIn("PlantedLeak", json.dumps(profile["sites"][0]["stack"]))
            # With what the kernel's kill for want of memory leaves in the trace.
            with trace.open("a") as file:
                json.dump({"schema": "hakmem-failure", "version": 1, "event": "killed", "pid": int(child),
                           "time": "2026-11-20T16:40:00Z", "program": "planted_program", "signal": 9,
                           "limit": {"name": "memory.max", "value": 1 << 20, "use": 1 << 20,
                                     "source": "/sys/fs/cgroup/memory.max"}}, file)
                file.write("\n")
            self.assertRegex(self.hakmem("explain", trace).stdout, "(?s)Who held memory.*PlantedLeak")
            heap.unlink()
            trace.unlink()

    def test_an_option_is_explained(self):
        process, _ = self.growing()
        self.assertIn("option %d decay_ms=500" % process.pid, self.hakmem("option", process.pid, status=2).stderr)

    def test_a_name_that_no_file_can_have(self):
        self.hakmem("heap", "--diff", "x" * 300, status=2)

    def test_wrong_command_lines(self):
        self.assertIn("no two profiles", self.hakmem("heap", "--diff", self.folder, status=1).stderr)
        for wrong in (("heap", "--diff", "only-one"), ("heap", "--for=1s", "--save=x", "1"), ("heap", "--for=-1s", "1"),
                      ("heap", "--since=1h", "1"), ("heap", "--diff", "--for=1s", "a", "b"),
                      ("heap", "--for=soon", "1"), ("watch", "1"), ("watch", "--keep=1", "1", self.folder),
                      ("watch", "--every=1ms", "1", self.folder),
                      ("heap", "--diff", "--since=-1h", self.folder), ("heap", "--frames=0", "1"),
                      ("heap", "--focus=(", "1"), ("heap", "--by-class", "--hide=x", "1")):
            self.hakmem(*wrong, status=2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
