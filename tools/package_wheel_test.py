#!/usr/bin/env python3
"""Tests of the wheel's tag and archive."""
import pathlib
import tempfile
import unittest
import zipfile

import package_wheel

COMMAND = """
  NEEDED               libstdc++.so.6
  NEEDED               libc.so.6
Version References:
  required from libc.so.6:
    0x069691b2 0x00 03 GLIBC_2.32
    0x069691b4 0x00 02 GLIBC_2.34
  required from libstdc++.so.6:
    0x0297f869 0x00 05 GLIBCXX_3.4.%d
"""


class TagTest(unittest.TestCase):
    def test_is_of_the_newest_glibc_that_is_needed(self):
        self.assertEqual(package_wheel.tag([COMMAND % 29], "x86_64"), "manylinux_2_34_x86_64")
        newer = COMMAND % 29 + "    0x069691b5 0x00 04 GLIBC_2.36\n"
        self.assertEqual(package_wheel.tag([COMMAND % 29, newer], "x86_64"), "manylinux_2_36_x86_64")

    def test_goes_with_the_libstdcxx_that_is_needed(self):
        self.assertEqual(package_wheel.tag([COMMAND % 30], "x86_64"), "manylinux_2_35_x86_64")

    def test_no_other_library_may_be_needed(self):
        with self.assertRaisesRegex(ValueError, "libfoo.so.1"):
            package_wheel.tag([COMMAND % 29 + "  NEEDED               libfoo.so.1\n"], "x86_64")


class ArchiveTest(unittest.TestCase):
    def test_is_the_same_each_time_and_lists_its_files(self):
        with tempfile.TemporaryDirectory() as scratch:
            archives = []
            for name in "ab":
                folder = pathlib.Path(scratch) / name
                (folder / "hakmem/bin").mkdir(parents=True)
                (folder / "hakmem/bin/hakmem").write_text("a command")
                package_wheel.describe(folder / "hakmem.dist-info", "any")
                wheel = pathlib.Path(scratch) / (name + ".whl")
                package_wheel.pack(folder, folder / "hakmem.dist-info/RECORD", wheel, 1_700_000_000)
                archives.append(wheel.read_bytes())
            self.assertEqual(*archives)
            with zipfile.ZipFile(wheel) as archive:
                self.assertEqual(archive.getinfo("hakmem/bin/hakmem").external_attr >> 16, 0o100755)
                self.assertIn("elfutils", archive.read("hakmem.dist-info/NOTICE").decode())
                record = archive.read("hakmem.dist-info/RECORD").decode()
                self.assertEqual({line.split(",")[0] for line in record.split()}, set(archive.namelist()))


if __name__ == "__main__":
    unittest.main()
