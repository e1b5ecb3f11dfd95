#!/usr/bin/env python3
"""What the debug variant says of programs with defects, and what others do.

Usage: debugging_test.py VARIANT LIBRARY DEBUGGING.md PROGRAM…
Runs the programs on the library and compares what is printed, with addresses,
paths and numbers of processes replaced. The examples of the document must be
what is printed, too.
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

VARIANT, LIBRARY, DOCUMENT = sys.argv[1], os.path.realpath(sys.argv[2]), sys.argv[3]
PROGRAMS = {os.path.basename(path): os.path.abspath(path) for path in sys.argv[4:]}
EXAMPLE = re.compile(r"<!-- example: (\w+)(?: ([^>]*?))? -->\n```\n(.*?)```", re.DOTALL)
REPLACED = [
    (re.compile(r" \(BuildId: [0-9a-f]+\)"), ""),
    (re.compile(r"\(/[^ )]*/([^/ )]+)\+0x[0-9a-f]+\)"), r"(\1)"),
    (re.compile(r"\+0x[0-9a-f]+"), ""),
    (re.compile(r"0x[0-9a-f]{5,}"), "0xP"),
    (re.compile(r"(thread|process) [0-9]+"), r"\1 N"),
]


def run(name, *arguments, **variables):
    """(standard output, standard error, exit status) of a program."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HAKMEM_")}
    environment.update(variables, LD_PRELOAD=LIBRARY)
    result = subprocess.run([PROGRAMS[name], *arguments], env=environment, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return result.stdout, result.stderr, result.returncode


def plain(text):
    for pattern, replacement in REPLACED:
        text = pattern.sub(replacement, text)
    return text


def stacks(text):
    """What is said before each stack -> the names of the program's own functions in it."""
    found = {}
    title = None
    for line in plain(text).splitlines():
        frame = re.match(r"    #\d+ 0xP (\w+) \(\w+\)$", line)
        if frame:
            found.setdefault(title, []).append(frame.group(1))
        elif not line.startswith("    "):
            title = line.strip() if "stack of that call" not in line else title
    return found


def own_leaks(text, program):
    """The entries of a leak report that the program's own code is at the top of."""
    entries = re.split(r"(?=^hakmem: leak)", plain(text), flags=re.MULTILINE)
    return [re.sub(r"^    #\d+ 0xP (_start|.*\((?!%s\))).*\)\n" % program, "", entry, flags=re.MULTILINE)
            for entry in entries if re.search(r"#0 0xP \w+ \(%s\)" % program, entry)]


class Failures(unittest.TestCase):
    def test_all_callers_are_told(self):
        _, error, status = run("failed_resize", HAKMEM_ACE_TRACE="1", HAKMEM_MAX_ALLOC="4M")
        self.assertEqual(status, 0)
        failure = next(json.loads(line) for line in error.splitlines() if '"event":"failure"' in line)
        paths = [failure["modules"][frame["module"]]["path"] for frame in failure["stack"] if "module" in frame]
        # The vector's own function, GrowIt, main and what calls it.
        self.assertGreaterEqual(paths.count(os.path.realpath(PROGRAMS["failed_resize"])), 3, failure)
        self.assertIn("libc.so", paths[-2])


@unittest.skipUnless(VARIANT == "debug", "the debug variant alone keeps stacks")
class History(unittest.TestCase):
    def test_double_free_names_all_places(self):
        _, error, status = run("double_free")
        self.assertEqual(status, -6)
        self.assertTrue(error.startswith("hakmem: fatal: double free of 0x"), error)
        found = stacks(error)
        self.assertEqual(found.get("allocated by thread N", [])[:2], ["AllocateIt", "main"], error)
        self.assertEqual(found.get("freed by thread N", [])[:2], ["FreeIt", "main"], error)

    def test_realloc_of_a_freed_span_names_both_places(self):
        _, error, status = run("use_after_free")
        self.assertEqual(status, -6)
        found = stacks(error)
        self.assertEqual(found.get("allocated by thread N", [])[:2], ["AllocateIt", "main"], error)
        self.assertEqual(found.get("freed by thread N", [])[:2], ["FreeIt", "main"], error)

    def test_no_stacks_if_not_wanted(self):
        _, error, status = run("double_free", HAKMEM_UNWIND="none")
        self.assertEqual(status, -6)
        self.assertIn("allocated by thread", error)
        self.assertNotIn("AllocateIt", error)


@unittest.skipUnless(VARIANT == "debug", "the debug variant alone reports leaks")
class Leaks(unittest.TestCase):
    def test_text(self):
        _, error, status = run("three_leaks", HAKMEM_LEAKS="1")
        self.assertEqual(status, 0)
        self.assertEqual(own_leaks(error, "three_leaks"), [
            "hakmem: leak: 300000 bytes in 1 block, allocated at\n"
            "    #0 0xP LeakLarge (three_leaks)\n    #1 0xP main (three_leaks)\n",
            "hakmem: leak: 2000 bytes in 1 block, allocated at\n"
            "    #0 0xP LeakFromRealloc (three_leaks)\n    #1 0xP main (three_leaks)\n",
            "hakmem: leak: 400 bytes in 4 blocks, allocated at\n"
            "    #0 0xP LeakOne (three_leaks)\n    #1 0xP main (three_leaks)\n"])
        last = re.fullmatch(r"hakmem: leaks: (\d+) bytes in (\d+) blocks never freed, from (\d+) "
                            r"places \([\w.]+, process \d+\)", error.splitlines()[-1])
        self.assertTrue(last, error)
        heads = re.findall(r"^hakmem: leak: (\d+) bytes? in (\d+) blocks?", error, re.MULTILINE)
        self.assertEqual(int(last[1]), sum(int(size) for size, _ in heads))
        self.assertEqual(int(last[2]), sum(int(count) for _, count in heads))
        self.assertEqual(int(last[3]), len(heads))
        sizes = [int(size) for size, _ in heads]
        self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_guarded_blocks_are_listed(self):
        _, error, _ = run("three_leaks", HAKMEM_LEAKS="1", HAKMEM_GUARD_SAMPLE="1")
        self.assertEqual([entry.splitlines()[0] for entry in own_leaks(error, "three_leaks")], [
            "hakmem: leak: 300000 bytes in 1 block, allocated at",
            "hakmem: leak: 2000 bytes in 1 block, allocated at",
            "hakmem: leak: 400 bytes in 4 blocks, allocated at"])

    def test_lines_of_json(self):
        with tempfile.TemporaryDirectory() as folder:
            _, error, _ = run("three_leaks", HAKMEM_LEAKS=folder + "/leaks.%p")
            self.assertEqual(error, "")
            [name] = os.listdir(folder)
            with open(folder + "/" + name, encoding="utf-8") as file:
                lines = [json.loads(line) for line in file]
        *leaks, total = lines
        own = [leak for leak in leaks if leak["frames"][0]["module"].endswith("/three_leaks")]
        self.assertEqual([(leak["bytes"], leak["blocks"], leak["frames"][0]["function"])
                          for leak in own],
                         [(300000, 1, "LeakLarge"), (2000, 1, "LeakFromRealloc"), (400, 4, "LeakOne")])
        self.assertEqual(total["kind"], "total")
        self.assertEqual(total["bytes"], sum(leak["bytes"] for leak in leaks))
        self.assertEqual(total["blocks"], sum(leak["blocks"] for leak in leaks))
        self.assertEqual(total["places"], len(leaks))
        self.assertEqual(name, "leaks.%d" % total["process_id"])

    def test_nothing_unless_asked(self):
        self.assertEqual(run("three_leaks"), ("", "", 0))

    def test_a_path_that_cannot_be_opened(self):
        _, error, status = run("three_leaks", HAKMEM_LEAKS="/nowhere/leaks")
        self.assertEqual(status, 0)
        self.assertRegex(error, r"\Ahakmem: warning: HAKMEM_LEAKS: cannot open /nowhere/leaks: "
                                r"No such file or directory \(three_leaks, process \d+\)\n\Z")

    def test_a_file_that_cannot_be_written(self):
        _, error, status = run("three_leaks", HAKMEM_LEAKS="/dev/full")
        self.assertEqual(status, 0)
        self.assertRegex(error, r"\Ahakmem: warning: HAKMEM_LEAKS: cannot write to /dev/full: "
                                r"No space left on device \(three_leaks, process \d+\)\n\Z")


@unittest.skipIf(VARIANT == "debug", "it has them")
class WithoutLeaks(unittest.TestCase):
    def test_leaks_need_the_debug_variant(self):
        _, error, status = run("three_leaks", HAKMEM_LEAKS="1")
        self.assertEqual(status, 0)
        self.assertRegex(error, r"\Ahakmem: warning: HAKMEM_LEAKS needs the debug variant; ignored "
                                r"\(three_leaks, process \d+\)\n\Z")


class CheckHeap(unittest.TestCase):
    SIZES = (1, 40, 1000, 5000, 60000, 100000, 300000000)

    def test_a_busy_heap_is_sound(self):
        self.assertEqual(run("busy_check"), ("damaged: 0\n", "", 0))

    @unittest.skipUnless(VARIANT in ("hardened", "debug"), "it looks at blocks")
    def test_overflow(self):
        for size in self.SIZES:
            output, error, status = run("overflow", str(size))
            self.assertEqual((output, status), ("before: 0\n", -6), size)
            self.assertRegex(error, r"\Ahakmem: fatal: overflow of 0x[0-9a-f]+ \(byte %d of a block "
                                    r"of %d bytes was written, " % (size, size))
            self.assertIn("\n  in hakmem_check_heap, thread ", error)
            if VARIANT == "debug":
                self.assertEqual(stacks(error).get("allocated by thread N", [])[:2],
                                 ["AllocateIt", "main"], error)

    @unittest.skipUnless(VARIANT in ("hardened", "debug"), "it looks at blocks")
    def test_write_after_free(self):
        for size in (1, 40, 1000, 5000, 60000):
            output, error, status = run("write_after_free", str(size))
            self.assertEqual((output, status), ("before: 0\n", -6), size)
            self.assertTrue(error.startswith("hakmem: fatal: write after free of 0x"), error)

    @unittest.skipUnless(VARIANT in ("hardened", "debug"), "it looks at blocks")
    def test_goes_on_if_it_may(self):
        output, error, status = run("overflow", "40", HAKMEM_ON_MISUSE="log", HAKMEM_WARN_WEAKENED="0")
        self.assertEqual((output, status), ("before: 0\nafter: 1\n", 0), error)
        self.assertTrue(error.startswith("hakmem: misuse: overflow of 0x"), error)

    @unittest.skipIf(VARIANT in ("hardened", "debug"), "it looks at blocks")
    def test_without_bounds_only_the_tables_are_checked(self):
        self.assertEqual(run("overflow", "40"), ("before: 0\nafter: 0\n", "", 0))


class CheckAtExit(unittest.TestCase):
    def test_what_the_program_has_written_is_not_lost(self):
        looks = VARIANT in ("hardened", "debug")
        output, error, status = run("exit_check", "plain", HAKMEM_STATS="1")
        self.assertEqual((output, status), ("not lost\n", -6 if looks else 0), error)
        self.assertIn('{"pid":', error)
        self.assertEqual("\n  in the check at exit, thread " in error, looks, error)

    @unittest.skipUnless(VARIANT in ("hardened", "debug"), "it looks at blocks")
    def test_zero_looks_at_nothing(self):
        output, error, status = run("exit_check", "plain", HAKMEM_CHECK_AT_EXIT="0", HAKMEM_WARN_WEAKENED="0")
        self.assertEqual((output, error, status), ("not lost\n", "", 0))

    @unittest.skipUnless(VARIANT in ("hardened", "debug"), "it looks at blocks")
    def test_log_leaves_the_exit_status(self):
        output, error, status = run("exit_check", "plain", HAKMEM_ON_MISUSE="log", HAKMEM_WARN_WEAKENED="0")
        self.assertEqual((output, status), ("not lost\n", 0), error)
        self.assertTrue(error.startswith("hakmem: misuse: write after free of 0x"), error)

    @unittest.skipUnless(VARIANT in ("hardened", "debug"), "it looks at blocks")
    def test_children_of_forks_are_looked_at_if_asked(self):
        self.assertEqual(run("exit_check", "child")[1:], ("", 0))
        _, error, status = run("exit_check", "child", HAKMEM_CHECK_AT_EXIT="2")
        self.assertEqual(status, 6, error)
        self.assertTrue(error.startswith("hakmem: fatal: write after free of 0x"), error)


@unittest.skipUnless(VARIANT == "debug", "the document is about the debug variant")
class Document(unittest.TestCase):
    def test_examples_are_what_is_printed(self):
        with open(DOCUMENT, encoding="utf-8") as file:
            examples = EXAMPLE.findall(file.read())
        self.assertGreaterEqual(len(examples), 2)
        for program, variables, text in examples:
            settings = dict(part.split("=", 1) for part in variables.split())
            _, error, _ = run(program, **settings)
            printed = plain(error)
            for line in plain(text).splitlines():
                if line == "...":
                    continue
                self.assertIn(line + "\n", printed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
