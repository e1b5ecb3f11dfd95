#!/usr/bin/python3
"""`hakmem run` and `hakmem explain` as a user has them.

Usage: test_run.py HAKMEM LIBRARY OWN_MALLOC PAUSED_SLEEP
"""
import ctypes
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import pauses

HAKMEM, LIBRARY, OWN_MALLOC, PAUSED_SLEEP = map(os.path.abspath, sys.argv[1:5])
PYTHON = "/usr/bin/python3"
PR_SET_CHILD_SUBREAPER = 36
# glibc's loader knows its own folder; the rest leads to the root.
FOR_GLIBC = "/$LIB/../../../.."
LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
# Says what it gets, whenever it gets it.
WAIT_FOR_SIGNAL = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [%d])
print("ready", flush=True)
signal.sigwait([%d])
print("got", flush=True)
raise SystemExit(9)
"""
# Leaves one that has ended to the command. Then it hears from the command, which hears of that first.
ORPHAN = """
import contextlib, os, pathlib, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])
read, write = os.pipe()
child = os.fork()
if child == 0:
    orphan = os.fork()
    if orphan != 0:
        os.write(write, b"%d" % orphan)
    os._exit(0)
os.waitpid(child, 0)
stat = pathlib.Path("/proc/%d/stat" % int(os.read(read, 20)))
with contextlib.suppress(OSError):
    while ") Z " not in stat.read_text():
        os.sched_yield()
# Behind what the kernel does at that end.
with contextlib.suppress(ChildProcessError):
    os.waitpid(-1, os.WNOHANG)
os.kill(os.getppid(), signal.SIGWINCH)
signal.sigwait([signal.SIGWINCH])
print("is left" if stat.exists() else "is gone")
"""
TWICE = """
#include <stdlib.h>
namespace demo {
__attribute__((always_inline)) inline void Drop(char* block) { free(block); }
__attribute__((noinline)) void Twice(char* block) {
  Drop(block);
  Drop(block);
  __asm__ volatile("");
}
}
int main() { demo::Twice(static_cast<char*>(malloc(100))); return 0; }
"""
# Memory until there is no more.
EAT = "blocks = [bytearray(1 << 20) for _ in range(1000)]"
LIMITED = ("--limit=64M",)
FULL = "Exhaustion/heap_limit"


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hakmem_test.")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR": str(self.folder),
                            "HAKMEM_LIBRARY_DIR": os.path.dirname(LIBRARY)}

    def command(self, command, **kwargs):
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        kwargs.setdefault("env", self.environment)
        return subprocess.run([HAKMEM, *command], capture_output=True, text=True,
                              cwd=self.folder, check=False, **kwargs)

    def run_shell(self, script, *flags, **kwargs):
        return self.command(["run", *flags, "--", "/bin/sh", "-c", script], **kwargs)

    def test_the_program_runs_on_hakmem_as_if_alone(self):
        result = self.run_shell("cat; grep -c libhakmem /proc/self/maps; echo said >&2; exit 3", stdin=None,
                                input="given\n")
        self.assertEqual(result.returncode, 3)
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0], "given")
        self.assertGreater(int(lines[1]), 0)
        self.assertEqual(result.stderr, "said\n")
        self.assertEqual(list(self.folder.iterdir()), [], "something is left behind")

    def test_each_variant_is_loaded(self):
        for variant in ("release", "tracing", "hardened", "debug"):
            result = self.run_shell("echo $LD_PRELOAD; cat /proc/self/maps", "--variant=" + variant)
            name = "libhakmem.so" if variant == "release" else "libhakmem-%s.so" % variant
            library = os.path.realpath(os.path.join(os.path.dirname(LIBRARY), name))
            self.assertEqual(result.stdout.split("\n")[0], FOR_GLIBC + library)
            self.assertIn(" %s\n" % library, result.stdout)

    def test_a_child_on_musl_is_not_asked_to_load_it(self):
        # musl's loader takes the name as it is, and passes over files that are not there.
        name = self.run_shell("echo $LD_PRELOAD").stdout.strip()
        self.assertTrue(os.path.isabs(name))
        self.assertFalse(os.path.exists(name))

    def test_what_was_preloaded_stays(self):
        libc = next(line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines()
                    if "libm.so" in line or "libc.so" in line)
        self.environment["LD_PRELOAD"] = libc
        result = self.run_shell("echo $LD_PRELOAD", "--library=" + LIBRARY)
        self.assertEqual(result.stdout, "%s:%s\n" % (LIBRARY, libc))
        self.assertEqual(result.stderr, "")

    def test_a_library_whose_path_has_spaces_is_loaded(self):
        folder = self.folder / "a b"
        folder.mkdir()
        library = shutil.copy(os.path.realpath(LIBRARY), folder)
        result = self.run_shell("grep -c 'a b/libhakmem' /proc/self/maps", "--library=" + library)
        self.assertGreater(int(result.stdout), 0, result.stderr)

    def test_options_reach_the_program(self):
        # Another `hakmem run` in it finds the library, too.
        result = self.run_shell("echo $HAKMEM_DECAY_MS $HAKMEM_DEPOT $HAKMEM_HEAP_LIMIT $HAKMEM_LIBRARY_DIR",
                                "--option", "HAKMEM_DECAY_MS=7", "--option=DEPOT=1M", "--limit=2G")
        self.assertEqual(result.stdout, "7 1M 2G %s\n" % os.path.dirname(LIBRARY))
        self.assertNotIn("is not an option", result.stderr)

    def test_wrong_use_is_125_and_says_why(self):
        for command, words in ((["--option", "HAKMEM_NOTHING=1", "true"], "is not an option of hakmem"),
                               (["--limit=lots", "true"], "HAKMEM_HEAP_LIMIT cannot be lots"),
                               (["--variant=fast", "true"], "release, tracing, hardened, debug"),
                               (["--library=/no/such.so", "true"], "there is no library"),
                               (["--library=/bin/true", "true"], "/bin/true is no hakmem"),
                               (["--library=" + __file__, "true"], "is no hakmem"),
                               (["--nothing", "true"], "there is no flag --nothing"),
                               ([], "name a program")):
            result = self.command(["run", *command])
            self.assertEqual(result.returncode, 125, command)
            self.assertIn(words, result.stderr)

    def test_programs_that_cannot_run_have_the_shells_statuses(self):
        (self.folder / "text").write_text("no program")
        (self.folder / "text").chmod(0o644)
        self.assertEqual(self.command(["run", "no-such-program"]).returncode, 127)
        self.assertEqual(self.command(["run", "./text"]).returncode, 126)

    def test_it_dies_by_the_programs_signal(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1):
            self.assertEqual(self.run_shell("kill -%d $$" % number).returncode, -number)

    def test_signals_are_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT):
            script = WAIT_FOR_SIGNAL % (number, number)
            with subprocess.Popen([HAKMEM, "run", "--", PYTHON, "-c", script], env=self.environment,
                                  stdout=subprocess.PIPE, text=True) as process:
                self.assertEqual(process.stdout.readline(), "ready\n")
                process.send_signal(number)
                self.assertEqual(process.stdout.readline(), "got\n")
                self.assertEqual(process.wait(), 9)

    def test_orphans_are_collected(self):
        # The kernel gives them to a container's first process, or to one that has asked for that.
        result = self.command(["run", "--", PYTHON, "-c", ORPHAN],
                              preexec_fn=lambda: ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1))
        self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "is gone\n", ""))

    def test_ignored_signals_stay_ignored(self):
        result = subprocess.run(["/bin/sh", "-c", "trap '' TERM; exec \"$@\"", "sh", HAKMEM, "run", "--", "/bin/sh",
                                 "-c", "kill -TERM $$; echo alive"], env=self.environment, capture_output=True,
                                text=True, check=False)
        self.assertEqual(result.stdout, "alive\n")

    def test_it_stops_and_goes_on_with_the_program(self):
        process = subprocess.Popen([HAKMEM, "run", "--", "/bin/sh", "-c", "kill -STOP $$; exit 4"],
                                   env=self.environment)
        self.addCleanup(process.kill)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        self.assertTrue(os.WIFSTOPPED(status))
        process.send_signal(signal.SIGCONT)
        self.assertEqual(process.wait(), 4)

    def test_a_program_without_hakmem_is_named(self):
        # Linked statically, so that it can mend a broken loader.
        result = self.command(["run", "/sbin/ldconfig", "-p"])
        self.assertEqual(result.stderr, "hakmem: /sbin/ldconfig is linked statically, so hakmem could not be "
                         "loaded into it\n")

    def test_nothing_is_loaded_into_a_program_of_musl(self):
        # The loader's name tells. This one is glibc's, so that the program runs and shows what is loaded.
        loader = self.folder / "ld-musl-x86_64.so.1"
        loader.symlink_to(next(path for path in LOADERS if os.path.exists(path)))
        source = self.folder / "a.c"
        source.write_text("#include <stdlib.h>\nint main(void) { return getenv(\"LD_PRELOAD\") != NULL; }\n")
        program = self.folder / "a.out"
        subprocess.run(["clang-19", "-o", program, source, "-Wl,--dynamic-linker=%s" % loader], check=True)
        result = self.command(["run", str(program)])
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, "hakmem: %s runs on musl, and this hakmem on glibc, so hakmem could not be "
                         "loaded into it\n" % program)
        result = self.command(["run", "--library=" + LIBRARY, str(program)])
        self.assertEqual(result.returncode, 1)

    def test_a_report_gets_names_lines_and_inlined_calls(self):
        source = self.folder / "twice.cc"
        source.write_text(TWICE)
        program = self.folder / "twice"
        subprocess.run(["clang-19", "-gdwarf-4", "-O2", "-fno-builtin", "-o", program, source], check=True)
        result = self.command(["run", str(program), "an argument"])
        self.assertEqual(result.returncode, -signal.SIGABRT)
        self.assertRegex(result.stderr, r"^hakmem: fatal: double free of 0x")
        self.assertRegex(result.stderr, r"(?m)^    #0 demo::Drop\(char\*\) at \S*twice\.cc:4 \(inlined\)\n"
                         r"    #1 demo::Twice\(char\*\) at \S*twice\.cc:7\n    #2 main at \S*twice\.cc:11\n")
        self.assertIn("hakmem run --variant=debug -- %s 'an argument'\n" % program, result.stderr)
        # Who goes on, hears of it at once; who asked for a file, has it there.
        result = self.command(["run", "--option=ON_MISUSE=log", str(program)])
        self.assertIn("#0 0x", result.stderr)
        report = self.folder / "report"
        result = self.command(["run", "--option=REPORT=%s" % report, str(program)])
        self.assertNotIn("double free", result.stderr)
        self.assertIn("double free", report.read_text())
        # Of a path the library's line has plain ASCII alone; its file is found all the same.
        named = self.folder / "zwei\nmal\x1b[31m*\u00fc"
        os.link(program, named)
        result = self.command(["run", "--option=ON_MISUSE=log", str(named)])
        self.assertRegex(result.stderr, r"(?m)^    #0 0x.* \(\S*zwei\?mal\?\[31m\*\?\?\+0x")
        result = self.command(["run", str(named)])
        self.assertRegex(result.stderr, r"(?m)^    #0 demo::Drop\(char\*\) at \S*twice\.cc:4 \(inlined\)$")

    def test_a_malloc_of_the_programs_own_is_named(self):
        result = self.command(["run", OWN_MALLOC])
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr, "hakmem: %s brings its own malloc, calloc, realloc, free, so nothing went to "
                         "hakmem\n" % OWN_MALLOC)
        result = self.command(["run", OWN_MALLOC, "aligned"])
        self.assertIn("so these calls did not go to hakmem", result.stderr)
        # One that cannot be seen would look the same.
        self.assertIn("asked hakmem for nothing", self.command(["run", "/bin/true"]).stderr)

    def test_children_without_hakmem_are_named(self):
        source = self.folder / "a.c"
        source.write_text("#include <unistd.h>\nchar byte;\nint main(void) { return write(1, \"ready\\n\", 6) != 6 || "
                          "read(0, &byte, 1) != 1; }\n#ifdef OWN\nvoid *malloc(size_t n) { return 0; }\n#endif\n")
        programs = [self.folder / name for name in ("like-others", "own", "static")]
        for program, flags in zip(programs, ((), ("-DOWN", "-rdynamic"), ("-static",))):
            subprocess.run(["clang-19", "-o", program, source, *flags], check=True)
        paused = pauses.Pauses(PAUSED_SLEEP)
        self.addCleanup(paused.close)
        run = paused.start([HAKMEM, "run", "/bin/sh", "-c", "; ".join(map(str, programs))], self.environment,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(run.communicate)
        self.addCleanup(run.kill)
        self.assertTrue(paused.wait())
        for _ in programs:
            self.assertEqual(run.stdout.readline(), "ready\n")
            paused.go()  # It looks, and sleeps again.
            self.assertTrue(paused.wait())
            run.stdin.write("g")
            run.stdin.flush()
        _, errors = run.communicate()
        self.assertEqual(run.returncode, 0)
        self.assertEqual(errors, "hakmem: %s brings its own malloc, so these calls did not go to hakmem\n"
                         "hakmem: %s is linked statically, so hakmem could not be loaded into it\n" % tuple(programs[1:]))

    def test_a_trace_that_cannot_be_written_is_no_good_news(self):
        missing = self.folder / "no" / "folder" / "trace"
        for trace, reason in (("/dev/full", ""), (str(missing), " (No such file or directory)")):
            result = self.command(["run", "--trace=" + trace, *LIMITED, "--", PYTHON, "-c", EAT])
            self.assertIn("MemoryError", result.stderr)
            self.assertIn("hakmem: whether a call failed is not known: nothing of hakmem's was written to %s%s\n"
                          % (trace, reason), result.stderr)
        result = self.run_shell("exit 0", "--option=HAKMEM_ACE_TRACE=0")
        self.assertIn("HAKMEM_ACE_TRACE=0 is no file", result.stderr)

    def test_libraries_are_found_where_distributions_put_them(self):
        program = self.folder / "bin" / "hakmem"
        program.parent.mkdir()
        shutil.copy(os.path.realpath(HAKMEM), program)
        del self.environment["HAKMEM_LIBRARY_DIR"]
        for folder in ("lib", "lib64", "lib/%s-linux-gnu" % os.uname().machine, "lib64/hakmem"):
            library = self.folder / folder / "libhakmem.so"
            library.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(os.path.realpath(LIBRARY), library)
            result = subprocess.run([program, "run", "/bin/sh", "-c", "echo $LD_PRELOAD"], env=self.environment,
                                    capture_output=True, text=True, check=False)
            self.assertEqual(result.stdout, "%s%s\n" % (FOR_GLIBC, library), result.stderr)
            library.unlink()

    def test_failures_are_said_and_explained(self):
        result = self.command(["run", *LIMITED, "--", PYTHON, "-c", EAT])
        self.assertEqual(result.returncode, 1)
        self.assertIn("MemoryError", result.stderr)
        self.assertRegex(result.stderr, r"\* " + FULL + ", 1 call failed")
        self.assertIn("64.0 MiB", result.stderr)
        self.assertRegex(result.stderr, r"at most [\d.]+ MiB mapped for blocks \(python3")
        words = result.stderr.splitlines()[-1].split()
        self.assertEqual(words[3:6], ["hakmem", "explain", words[5]])
        explained = self.command(["explain", words[5]])
        self.assertEqual(explained.returncode, 0, explained.stdout)
        self.assertIn("What to do", explained.stdout)
        self.assertIn("export HAKMEM_HEAP_LIMIT=", explained.stdout)

    def test_a_childs_failures_are_said_too(self):
        result = self.run_shell("%s -c '%s' 2>/dev/null; exit 0" % (PYTHON, EAT), *LIMITED)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, FULL)

    def test_the_trace_is_where_it_is_asked_for(self):
        for name in ("all.jsonl", "one.%p.jsonl"):
            result = self.command(["run", "--trace=" + name, *LIMITED, "--", "/bin/sh", "-c",
                                   "cd /; %s -c '%s' 2>/dev/null; exit 0" % (PYTHON, EAT)])
            self.assertRegex(result.stderr, FULL)
        traces = list(self.folder.glob("*.jsonl"))
        self.assertGreater(len(traces), 2)
        report = json.loads(self.command(["explain", "--json", *map(str, traces)]).stdout)
        self.assertEqual(report["failed"], 2)
        self.assertEqual({cause["reason"] for cause in report["causes"]}, {"Exhaustion"})
        self.assertEqual(list(self.folder.glob("hakmem-run.*")), [], "something is left behind")
        # A second run says what is new, and only that.
        quiet = self.run_shell("exit 0", "--trace=all.jsonl")
        self.assertEqual(quiet.stderr, "")


class ExplainTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="hakmem_test.")
        self.addCleanup(folder.cleanup)
        self.trace = pathlib.Path(folder.name, "trace")
        self.line = json.dumps({
            "schema": "hakmem-failure", "version": 1, "event": "failure", "sequence": 1,
            "time": "2026-11-20T16:40:01Z", "monotonic_ns": 1, "pid": 1, "tid": 1, "program": "server",
            "call": "malloc", "size": 64, "reason": "MapFail", "detail": "unknown",
            "disposition": "returned_null", "attempts": 1}) + "\n"

    def explain(self, *arguments, **kwargs):
        return subprocess.run([HAKMEM, "explain", *arguments], capture_output=True, text=True,
                              check=False, **kwargs)

    def test_the_status_says_whether_all_was_read(self):
        self.trace.write_text(self.line)
        self.assertEqual(self.explain(str(self.trace)).returncode, 0)
        self.assertEqual(self.explain(str(self.trace), "/no/such/file").returncode, 1)
        self.trace.write_text(self.line + self.line[:80])
        self.assertEqual(self.explain(str(self.trace)).returncode, 1)
        self.assertEqual(self.explain().returncode, 2)
        self.assertEqual(self.explain("--nothing").returncode, 2)
        self.assertEqual(self.explain("--follow", "--json", "x").returncode, 2)

    def test_a_missing_file_is_no_good_news(self):
        result = self.explain("/no/such/file")
        self.assertEqual(result.returncode, 1)
        self.assertIn("/no/such/file cannot be opened: No such file or directory", result.stderr)
        self.assertNotIn("No call failed", result.stdout)
        self.assertFalse(json.loads(self.explain("--json", "/no/such/file").stdout)["complete"])

    def test_an_empty_folder_is_no_good_news(self):
        for flags in ([], ["--json"], ["--follow"]):
            result = self.explain(*flags, str(self.trace.parent))
            self.assertEqual(result.returncode, 1)
            self.assertIn("%s cannot be read: there is no file in it" % self.trace.parent, result.stderr)
            self.assertIn('"complete": false' if flags == ["--json"] else "Nothing could be read", result.stdout)

    def test_an_empty_folder_keeps_nobody_from_the_others(self):
        self.trace.write_text(self.line)
        empty = self.trace.with_name("empty")
        empty.mkdir()
        result = self.explain(str(empty), str(self.trace))
        self.assertEqual(result.returncode, 1)
        self.assertIn("there is no file in it", result.stderr)
        self.assertIn("1 call failed in 1 process.", result.stdout)
        result = self.explain("--follow", str(empty), "-", input=self.line)
        self.assertEqual((result.returncode, result.stdout.count("server[1] malloc")), (1, 1))

    def test_a_file_by_several_names_counts_once(self):
        self.trace.write_text(self.line)
        link = self.trace.with_name("zlatest")
        link.symlink_to(self.trace.name)
        for arguments in ([self.trace, self.trace], [self.trace, link], [link.parent], [self.trace, link.parent]):
            result = self.explain(*map(str, arguments))
            self.assertEqual(result.returncode, 0)
            self.assertIn("1 call failed in 1 process.", result.stdout)
            self.assertIn(" was there before, and counts once\n", result.stderr)
        result = self.explain("--follow", "-", "-", input=self.line)
        self.assertEqual(result.returncode, 0)
        # Others of the same content are others.
        link.unlink()
        link.write_text(self.line)
        result = self.explain(str(self.trace), str(link))
        self.assertEqual(result.stderr, "")
        self.assertIn("2 calls failed in 2 processes.", result.stdout)

    def test_a_full_standard_output_is_said(self):
        self.trace.write_text(self.line)
        for command in (["explain", str(self.trace)], ["explain", "--json", str(self.trace)],
                        ["explain", "--follow", "-"], ["help"], ["help", "run"], ["--version"]):
            with open("/dev/full", "wb") as full, open(self.trace, "rb") as line:
                result = subprocess.run([HAKMEM, *command], stdin=line, stdout=full, stderr=subprocess.PIPE, text=True,
                                        check=False)
            self.assertEqual(result.returncode, 1, command)
            self.assertEqual(result.stderr,
                             "hakmem: standard output cannot be written: No space left on device\n")

    def test_standard_input_and_folders_are_read(self):
        self.assertIn("1 call failed", self.explain("-", input=self.line).stdout)
        self.trace.write_text(self.line)
        self.trace.with_name("second").write_text(self.line)
        result = self.explain(str(self.trace.parent))
        self.assertIn("2 calls failed in 2 processes.", result.stdout)

    def test_the_page_is_written(self):
        self.trace.write_text(self.line)
        page = self.trace.with_name("page.html")
        self.assertEqual(self.explain("--html=%s" % page, str(self.trace)).returncode, 0)
        self.assertIn("</html>", page.read_text())
        result = self.explain("--html=/no/such/folder/page", str(self.trace))
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write /no/such/folder/page: No such file or directory", result.stderr)

    def test_a_pipe_that_nobody_writes_to_is_followed(self):
        looks = pauses.Pauses(PAUSED_SLEEP)
        self.addCleanup(looks.close)
        os.mkfifo(self.trace)
        process = looks.start([HAKMEM, "explain", "--follow", str(self.trace)], stdout=subprocess.PIPE)
        self.addCleanup(process.kill)
        # It looks again; without a pipe's other end it would still be opening.
        self.assertTrue(looks.wait())
        process.send_signal(signal.SIGINT)
        looks.go()
        self.assertIn("nothing of hakmem's in it", process.communicate()[0])

    def test_a_growing_file_is_followed(self):
        looks = pauses.Pauses(PAUSED_SLEEP)
        self.addCleanup(looks.close)
        process = looks.start([HAKMEM, "explain", "--follow", str(self.trace)], stdout=subprocess.PIPE)
        self.addCleanup(process.kill)
        # Not there yet, then in two parts.
        self.assertTrue(looks.wait())
        with open(self.trace, "w", encoding="ascii") as file:
            file.write(self.line[:50])
            file.flush()
            looks.go()
            self.assertTrue(looks.wait())
            file.write(self.line[50:])
        looks.go()
        self.assertIn("server[1] malloc(64) MapFail/unknown", process.stdout.readline())
        text = ""
        while "Evidence" not in text:
            text += process.stdout.readline()
        self.assertIn("What to do", text)
        # Replaced by another: it goes on with that at its next look.
        self.assertTrue(looks.wait())
        other = self.trace.with_name("other")
        other.write_text(self.line.replace("server", "client"))
        other.rename(self.trace)
        looks.go()
        self.assertTrue(looks.wait())
        looks.go()
        while "client[1]" not in text:
            text += process.stdout.readline()
        self.assertTrue(looks.wait())
        process.send_signal(signal.SIGINT)
        looks.go()
        rest, _ = process.communicate()
        self.assertEqual(process.returncode, 0)
        self.assertIn("2 calls failed", rest)

    def test_more_files_than_descriptors_are_followed(self):
        for number in range(12):
            self.trace.with_name("%d.jsonl" % number).write_text(self.line)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        looks = pauses.Pauses(PAUSED_SLEEP)
        self.addCleanup(looks.close)
        process = looks.start([HAKMEM, "explain", "--follow", str(self.trace.parent)], stdout=subprocess.PIPE,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (10, most)))
        self.addCleanup(process.kill)
        # It has looked at them all.
        self.assertTrue(looks.wait())
        process.kill()
        self.assertEqual(process.communicate()[0].count("server[1] malloc(64)"), 12)

    def test_a_pipe_is_followed_to_its_end(self):
        result = self.explain("--follow", "-", input=self.line + "noise\n" + self.line)
        self.assertEqual(result.returncode, 0)
        self.assertIn("2 calls failed", result.stdout)
        self.assertEqual(result.stdout.count("server[1]"), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
