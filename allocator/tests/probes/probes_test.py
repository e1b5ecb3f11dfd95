#!/usr/bin/env python3
"""The probes of a library: their notes, and what gdb finds at them.

Usage: probes_test.py LIBRARY PROGRAM
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

LIBRARY, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:])
# How many arguments each has.
PROBES = {"refill": 2, "slab_create": 2, "span_grant": 2, "span_free": 2, "purge": 2, "refusal": 3, "failure": 3}
TEXTS = {"refusal": (1, 2), "failure": (1, 2)}
NOPS = {62: b"\x90", 183: b"\x1f\x20\x03\xd5"}  # by ELF's number of the machine


class Elf:
    """A file's sections, and its bytes by address."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        self.machine, = struct.unpack_from("<H", self.bytes, 18)
        at, = struct.unpack_from("<Q", self.bytes, 40)
        size, count, names = struct.unpack_from("<HHH", self.bytes, 58)
        headers = [struct.unpack_from("<IIQQQQ", self.bytes, at + i * size) for i in range(count)]
        self.sections = {self.text(headers[names][4] + header[0]): header for header in headers}

    def text(self, at):
        return self.bytes[at:self.bytes.index(b"\0", at)].decode()

    def content(self, name):
        _, _, _, _, offset, size = self.sections[name]
        return self.bytes[offset:offset + size]

    def code(self, address, count):
        for _, kind, flags, begin, offset, size in self.sections.values():
            if kind == 1 and flags & 4 and begin <= address < begin + size:
                return self.bytes[offset + address - begin:][:count]
        return b""


def probes(elf):
    """(address, base, provider, name, arguments) of each note."""
    notes = elf.content(".note.stapsdt")
    at = 0
    while at < len(notes):
        name_bytes, bytes_, kind = struct.unpack_from("<III", notes, at)
        assert (name_bytes, kind) == (8, 3) and notes[at + 12:at + 20] == b"stapsdt\0"
        address, base, semaphore = struct.unpack_from("<QQQ", notes, at + 20)
        assert semaphore == 0
        words = notes[at + 44:at + 20 + bytes_].split(b"\0")
        yield (address, base, *(word.decode() for word in words[:3]))
        at += 20 + (bytes_ + 3) // 4 * 4


class ProbesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        # As it is installed.
        self.stripped = pathlib.Path(folder.name) / "libhakmem.so"
        subprocess.run(["strip", "--strip-all", "-o", self.stripped, LIBRARY], check=True)

    def test_each_probe_has_its_notes(self):
        elf = Elf(self.stripped)
        base = elf.sections[".stapsdt.base"][3]
        found = {}
        for address, note_base, provider, name, arguments in probes(elf):
            self.assertEqual((provider, note_base), ("hakmem", base), name)
            for argument in arguments.split(" "):
                self.assertRegex(argument, r"^8@[$%\w]+$", name)
            found[name] = len(arguments.split(" "))
            self.assertTrue(elf.code(address, 4).startswith(NOPS[elf.machine]), name)
        self.assertEqual(found, PROBES)

    def test_a_debugger_reads_their_arguments(self):
        self.assertIsNotNone(shutil.which("gdb"), "gdb is not installed (tools/setup.sh installs it)")
        commands = ["set startup-with-shell off", "set environment LD_PRELOAD %s" % self.stripped, "break main", "run"]
        for name, count in PROBES.items():
            words = ", ".join(("(char*)" if i in TEXTS.get(name, ()) else "") + "$_probe_arg%d" % i for i in range(count))
            forms = " ".join("%s" if i in TEXTS.get(name, ()) else "%lu" for i in range(count))
            commands += ["break -probe-stap hakmem:%s" % name,
                         'python gdb.breakpoints()[-1].commands = \'silent\\nprintf "%s %s\\\\n", %s\\ncontinue\''
                         % (name, forms, words)]
        commands.append("continue")
        done = subprocess.run(["gdb", "-nx", "-batch", *(word for command in commands for word in ("-ex", command)), PROGRAM],
                              check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={"PATH": os.environ["PATH"], "LC_ALL": "C"})
        for line in (r"slab_create \d+ 5120", r"refill 5120 [1-9]\d*",
                     r"purge \d+ [1-9]\d*", "refusal %d Threshold size" % 2 ** 62, "failure %d Threshold size" % 2 ** 62):
            self.assertRegex(done.stdout, re.compile("^%s$" % line, re.MULTILINE))
        # With what a variant puts behind it.
        spans = {what: re.search(r"^span_%s (\d+ [45]\d{6})$" % what, done.stdout, re.MULTILINE) for what in ("grant", "free")}
        self.assertEqual(spans["grant"][1], spans["free"][1])
        self.assertIn("exited normally", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
