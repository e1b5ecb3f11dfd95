#!/usr/bin/env python3
"""Tests that the checked-in schedules of jobs name what exists, and the same in all places.

The nightly ones are those of docs/testing.md, Every night: units of systemd in .ci/nightly, and a workflow.
Another workflow is for each change.
"""
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
UNITS = ROOT / ".ci/nightly"
WORKFLOW = ROOT / ".github/workflows/nightly.yml"
CHANGES = ROOT / ".github/workflows/ci.yml"
JOBS = ("bench", "fuzz", "test")
# Where specifiers and variables lead: the clone, and what each side keeps its results in.
CLONE, KEPT = ("%f/",), ("%S/hakmem/", "$HOME/hakmem/")


def settings(path):
    """(key, value) of each line of a unit."""
    return re.findall(r"^(\w+)=(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)


def commands_of_unit(job):
    found = [value for key, value in settings(UNITS / ("hakmem-%s@.service" % job)) if key.startswith("Exec")]
    return [shlex.split(value) for value in found if not value.startswith("/usr/bin/git ")]


def jobs_of_workflow():
    """The text of each job by name."""
    text = WORKFLOW.read_text(encoding="utf-8").split("\njobs:\n")[1]
    parts = re.split(r"^  (\w+):\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def commands_of_workflow(job):
    return [shlex.split(line) for line in re.findall(r"^ +- run: (.+)$", jobs_of_workflow()[job], re.MULTILINE)]


def in_clone(command):
    """The command as one types it in the clone, with results in OUT."""
    for prefix in CLONE:
        command = [word.removeprefix(prefix) for word in command]
    for prefix in KEPT:
        command = [word.replace(prefix, "OUT/") for word in command]
    return command


class CommandsTest(unittest.TestCase):
    def test_both_run_the_same(self):
        self.assertEqual(sorted(jobs_of_workflow()), sorted(JOBS))
        for job in JOBS:
            commands = [in_clone(command) for command in commands_of_unit(job)]
            self.assertTrue(commands)
            self.assertEqual(commands, [in_clone(command) for command in commands_of_workflow(job)])

    def test_commands_exist_and_know_their_options(self):
        for job in JOBS:
            for program, *arguments in map(in_clone, commands_of_unit(job)):
                self.assertTrue(shutil.which(ROOT / program), program)
                options = [word.split("=")[0] for word in arguments if word.startswith("-")]
                if options:
                    what = [word for word in arguments[:1] if not word.startswith("-")]
                    done = subprocess.run([ROOT / program, *what, "--help"], check=True, capture_output=True, text=True)
                    for option in options:
                        self.assertRegex(done.stdout, r"(?m)^ +%s\b" % option)

    def test_documents_say_so(self):
        text = (ROOT / "docs/testing.md").read_text(encoding="utf-8").split("\n## Every night\n")[1].split("\n## ")[0]
        for job in JOBS:
            command = in_clone(commands_of_unit(job)[-1])
            for words in ("hakmem-%s@.timer" % job, " ".join(command).replace("OUT/" + job, "DIR")):
                self.assertIn("`%s`" % words, text)
        self.assertIn("../.github/workflows/nightly.yml", text)
        for document in ("benchmarks.md", "fuzzing.md"):
            self.assertIn("testing.md#every-night", (ROOT / "docs" / document).read_text(encoding="utf-8"))


class UnitsTest(unittest.TestCase):
    def test_each_job_has_a_service_and_a_timer(self):
        self.assertEqual(sorted(path.name for path in UNITS.iterdir()),
                         sorted("hakmem-%s@.%s" % (job, kind) for job in JOBS for kind in ("service", "timer")))
        for job in JOBS:
            timer = dict(settings(UNITS / ("hakmem-%s@.timer" % job)))
            self.assertRegex(timer["OnCalendar"], r"^\*-\*-\* \d\d:\d\d$")
            self.assertEqual(timer["WantedBy"], "timers.target")

    def test_no_path_of_one_machine(self):
        for path in [*UNITS.iterdir(), WORKFLOW, CHANGES]:
            text = path.read_text(encoding="utf-8")
            self.assertEqual(re.findall(r"""(?:^|[\s="':])(/(?!usr/bin/)\S*)""", text), [], path)

    @unittest.skipUnless(shutil.which("systemd-analyze"), "there is no systemd-analyze here")
    def test_systemd_takes_them(self):
        def run(*command):
            return subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        instance = run("systemd-escape", "--path", ROOT).stdout.strip()
        with tempfile.TemporaryDirectory() as folder:
            copies = [shutil.copy(path, pathlib.Path(folder, path.name.replace("@", "@" + instance)))
                      for path in UNITS.iterdir()]
            done = run("systemd-analyze", "verify", *copies)
            # Of the machine's own units it may have something to say, too.
            self.assertEqual([line for line in done.stdout.splitlines() if "hakmem-" in line], [])
        for path in UNITS.glob("*.timer"):
            self.assertEqual(run("systemd-analyze", "calendar", dict(settings(path))["OnCalendar"]).returncode, 0)


class ChangesTest(unittest.TestCase):
    def test_runs_what_ci_runs_and_what_exists(self):
        commands = re.findall(r"^ +- run: (.+)$", CHANGES.read_text(encoding="utf-8"), re.MULTILINE)
        self.assertIn(".ci/run", commands)
        ours = [word for command in commands for word in command.split() if re.match(r"(tools|\.ci)/", word)]
        self.assertGreater(len(ours), 2)
        for program in ours:
            self.assertTrue(shutil.which(ROOT / program), program)

    @unittest.skipUnless(shutil.which("actionlint"), "there is no actionlint here")
    def test_a_linter_takes_the_workflows(self):
        done = subprocess.run(["actionlint"], cwd=ROOT, check=False, capture_output=True, text=True)
        self.assertEqual(done.stdout + done.stderr, "")


if __name__ == "__main__":
    unittest.main()
