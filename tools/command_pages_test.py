#!/usr/bin/env python3
"""Tests of the man pages and completions of the hakmem command."""
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import command_pages

HELP = {
    ("help",): "hakmem: a malloc.\n\n  run      a program on hakmem\n  trace    what it's for: [rates]\n  help     help NAME: flags\n",
    ("help", "run"): "usage: hakmem run [--FLAG…] [--] PROGRAM\n\nRuns PROGRAM. What-ever\n.it does.\n\nExit status: 1.\n\n"
                     "  --variant\n      Which hakmem: release or\n      hardened. Or more.\n\n  --limit\n      The most.\n",
    ("help", "trace"): "usage: hakmem trace [--FLAG…] FILE\n\nReads:\n\n    a  one\n    bc two\n\n  --json\n      Prints the report.\n\n"
                       "  --by-class\n      Counts.\n",
}


def example():
    return command_pages.subcommands(lambda *arguments: HELP[arguments])


def completed(*words):
    """What bash offers for the last of these words."""
    with tempfile.NamedTemporaryFile("w", suffix=".bash") as script:
        script.write(command_pages.bash_completion(example()))
        script.flush()
        program = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hakmem 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
        return subprocess.run(["bash", "-c", program, "bash", script.name, *words], stdout=subprocess.PIPE,
                              text=True, check=True).stdout.split()


class PagesTest(unittest.TestCase):
    def test_reads_what_the_command_says(self):
        run, trace = example()
        self.assertEqual((run.name, run.usage), ("run", "hakmem run [--FLAG…] [--] PROGRAM"))
        self.assertEqual(run.flags, [("variant", "Which hakmem: release or hardened. Or more."), ("limit", "The most.")])
        self.assertEqual(trace.flags, [("json", "Prints the report."), ("by-class", "Counts.")])

    def test_a_page_has_each_flag_and_no_accidental_request(self):
        page = command_pages.command_page(example(), "1.2.3", "2026-01-02")
        self.assertIn('.TH HAKMEM 1 "2026-01-02" "hakmem 1.2.3"', page)
        for words in ("\\fB\\-\\-variant\\fR", "What\\-ever .it does.", "\n.PP\nExit status: 1.",
                      "Reads:\n.PP\n.nf\n    a  one\n    bc two\n.fi\n.TP"):
            self.assertIn(words, page)
        self.assertEqual(command_pages.roff(".x\n'y"), "\\&.x\n\\&'y")

    def test_the_library_page_has_each_option(self):
        options = (command_pages.ROOT / "docs/options.md").read_text()
        page = command_pages.library_page(options, "1.2.3", "2026-01-02")
        self.assertEqual(page.count("\\fBHAKMEM_"), options.count("\n| `HAKMEM_"))
        self.assertGreater(page.count("\\fBHAKMEM_"), 20)


class CompletionTest(unittest.TestCase):
    def test_switches_are_the_flags_without_a_value(self):
        sources = "".join(path.read_text() for path in (command_pages.ROOT / "tools/hakmem").glob("*.cc")
                          if "test" not in path.name)
        flags = re.findall(r"^ABSL_FLAG\(\s*bool,\s*(\w+)", sources, re.MULTILINE)
        self.assertEqual(sorted(flag.replace("_", "-") for flag in flags), sorted(command_pages.SWITCHES))

    def test_bash_offers_subcommands_flags_and_values(self):
        self.assertEqual(completed("hakmem", "r"), ["run"])
        self.assertEqual(completed("hakmem", "run", "--v"), ["--variant="])
        self.assertEqual(completed("hakmem", "run", "--variant", "=", "ha"), ["hardened"])
        self.assertEqual(completed("hakmem", "trace", "--"), ["--json", "--by-class"])
        self.assertEqual(completed("hakmem", "help", "t"), ["trace"])

    def test_bash_leaves_the_program_its_own_flags(self):
        self.assertEqual(completed("hakmem", "run", "--", "ls", "--v"), [])
        self.assertEqual(completed("hakmem", "run", "--variant", "=", "debug", "ls", "--v"), [])

    def test_the_other_shells_can_read_theirs(self):
        for shell, text in (("zsh", command_pages.zsh_completion(example())), ("fish", command_pages.fish_completion(example()))):
            self.assertIn("variant", text)
            if shutil.which(shell) is None:
                continue
            with tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder) / "script"
                script.write_text(text)
                subprocess.run([shell, "-n", script], check=True)


if __name__ == "__main__":
    unittest.main()
