"""Processes on hakmem for tests of the commands that look into them."""
import os
import pathlib
import subprocess
import tempfile
import unittest


A_DAY_MS = 86_400_000


class PlantedProcessTest(unittest.TestCase):
    """With a folder of its own, in which cores lie."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *command, library, stderr=None, **options):
        """The process, once it has said that it is ready. It ends with the test. It keeps what it frees: no time passes.
        Chance guards none of its blocks, which would leave their class."""
        environment = {"PATH": os.environ["PATH"], "HAKMEM_DECAY_MS": str(A_DAY_MS), "HAKMEM_GUARD_SAMPLE": "0", **options}
        if library:
            environment["LD_PRELOAD"] = library
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=stderr, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def gdb(self, process, command):
        subprocess.run(["gdb", "-nx", "-batch", "-p", str(process.pid), "-ex", command], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)

    def core_of(self, process):
        core = self.folder / "core"
        self.gdb(process, "generate-core-file %s" % core)
        return core
