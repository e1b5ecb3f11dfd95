"""What the tests of this package share: a small world of programs and allocators."""
import functools
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

import machine
import peers
import session
import suite

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# An allocator that is not the C library's, as far as the loader can tell.
ALLOCATOR = """
#include <stddef.h>
extern void* __libc_malloc(size_t);
extern void __libc_free(void*);
void* malloc(size_t size) { return __libc_malloc(size); }
void free(void* block) { __libc_free(block); }
"""
# A library that loads, but allocates nothing.
NO_ALLOCATOR = "int nothing_of_importance(void) { return 1; }\n"
KNOWN_VERSION = functools.cache(peers._debian_version)
FOR_EVER = "tail -f /dev/null"
GOOD = """echo noise; echo 'result: {"operations": 1000, "seconds": 0.5}'"""


def compiler():
    return shutil.which("clang++-19") or shutil.which("c++")


def build_tools(folder):
    """The layout of bazel-bin, as far as the harness needs it."""
    tools = folder / "tools/measure"
    tools.mkdir(parents=True)
    for name, output, options in (("measure", "measure", []), ("calibrate", "calibrate", []),
                                  ("witness", "libwitness.so", ["-shared", "-fPIC", "-fno-exceptions"])):
        subprocess.run([compiler(), "-std=c++20", "-O1", *options, "-o", str(tools / output),
                        str(ROOT / "tools/measure" / (name + ".cc"))], check=True)
    (folder / "allocator").mkdir()
    build_library(folder / "allocator/libhakmem.so", ALLOCATOR)
    return folder


def build_library(path, text):
    subprocess.run([compiler(), "-x", "c", "-shared", "-fPIC", "-fno-builtin", "-o", str(path), "-"],
                   check=True, input=text, text=True)
    return str(path)


class Silent:
    """Progress that keeps what it was told."""

    def __init__(self):
        self.outcomes = []

    def phase(self, text):
        pass

    def left(self, seconds):
        pass

    def done(self, pair, outcome):
        self.outcomes.append((pair.program.name, pair.peer.name, outcome.status))


class QuietMachine:
    """Noise that takes no time."""

    def sample(self):
        pass

    def verdict(self):
        return machine.judge_noise([1.0, 1.0], 0.0, 0.0)


class LateWait:
    """In the place of process.wait: a program is late when it says so, and runs on as in `script`."""

    def __init__(self, folder):
        self.path = folder / "late"
        os.mkfifo(self.path)
        # For reading and writing, so that it is never at its end.
        self.file = os.open(self.path, os.O_RDWR)
        self.script = "echo >%s; %s" % (self.path, FOR_EVER)

    def __call__(self, child, _):
        descriptor = os.pidfd_open(child.pid)
        try:
            if self.file not in select.select([descriptor, self.file], [], [])[0]:
                return True
        finally:
            os.close(descriptor)
        os.read(self.file, 1)
        return False


class WorldTest(unittest.TestCase):
    """Tests with tools and libraries compiled once for the class."""

    @classmethod
    def setUpClass(cls):
        cls._world = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._world.cleanup)
        cls.world = build_tools(pathlib.Path(cls._world.name))
        cls.allocator = build_library(cls.world / "liballocator.so", ALLOCATOR)
        cls.no_allocator = build_library(cls.world / "libnone.so", NO_ALLOCATOR)
        cls.no_library = str(cls.world / "libtext.so")
        pathlib.Path(cls.no_library).write_text("this is no library\n")

    def setUp(self):
        # dpkg takes longer to find a file than most tests in all.
        patch = mock.patch.object(peers, "_debian_version", KNOWN_VERSION)
        patch.start()
        self.addCleanup(patch.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def peer(self, name, path):
        return peers.identify(peers.Peer(name, path), version=name)

    def script(self, name, text, **keys):
        return suite.Program(name=name, title=name, about=name, group="synthetic",
                             command=("/bin/sh", "-c", text), **keys)

    def session(self, programs, taking_part, **how):
        measure = self.world / "tools/measure"
        return session.Session(session.Tools(measure / "measure", measure / "libwitness.so"), programs,
                               taking_part, {"cpus": 1}, self.folder, QuietMachine(), Silent(), **how)

    def run_programs(self, programs, taking_part, repeats=2, **how):
        measured = self.session(programs, taking_part, **how)
        measured.run(repeats, 1, False)
        return measured

    def statuses(self, measured):
        """The worst of each pair, with its detail."""
        found = {}
        for run in measured.runs:
            key = (run["program"], run["peer"])
            if found.get(key, ("ok",))[0] == "ok":
                found[key] = (run["status"], run["detail"])
        return found


def processes_with(text):
    """Command lines of living processes that contain `text`."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and int(path.parent.name) != os.getpid():
            found.append(line)
    return found
