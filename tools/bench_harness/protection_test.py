#!/usr/bin/python3
"""What stands beside the times of allocators: the attacks that they stop, as docs/attacks.md has them."""
import pathlib
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

import protection
from errors import BadUsage, NotWritten
from example_results import by_hand

DOCUMENT = """
| attack | program and case | release | hardened | x |
|---|---|---|---|---|
| **Of one kind** | | | | |
| a write | `overflow one` | succeeds | detected | 40 % |
| a read | `overread one` | prevented | faults | crashes |
| with tokens | `typed one` | succeeds | prevented | – |

| technique | release | hardened | programs |
|---|---|---|---|
| by name | detected | detected | `overflow one` |
"""
TIMES = {"hakmem": (1, 1, 1), "hakmem-hardened": (1.5, 1.5, 1.5), "x": (2, 2, 2), "unknown": (3, 3, 3)}


class ProtectionTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.addCleanup(setattr, protection, "DOCUMENT", protection.DOCUMENT)
        protection.DOCUMENT = pathlib.Path(self.folder.name) / "attacks.md"
        protection.DOCUMENT.write_text(DOCUMENT, encoding="utf-8")

    def test_table_has_what_is_stopped_and_its_price(self):
        text = protection.show(by_hand({"a": TIMES}), None)
        self.assertIn("| allocator | stopped, of 2 | detected or faults |", text)
        rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in text.splitlines()[2:]]
        # Who is not in the document is left out, and what x was not asked. A share of runs or a crash is not enough.
        self.assertEqual(rows, [["hakmem-hardened", "2", "2"], ["hakmem", "1", "0"], ["x", "0", "0"]])

    def test_picture_stands_alone_and_names_everybody(self):
        path = pathlib.Path(self.folder.name) / "picture.svg"
        protection.show(by_hand({"a": TIMES}), path)
        root = ElementTree.parse(path).getroot()
        self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
        style = root.find("{http://www.w3.org/2000/svg}style").text
        for used in set(protection.re.findall(r"var\((--[a-z0-9-]+)\)", path.read_text(encoding="utf-8"))):
            self.assertEqual(style.count(used + ":"), 1 if used == "--sans" else 2, used)
        words = {"".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")}
        self.assertLessEqual({"hakmem", "hakmem-hardened", "x"}, words)
        self.assertNotIn("unknown", words)

    def test_the_documents_own_table_is_read(self):
        columns = protection.attacks((protection.build.ROOT / "docs/attacks.md").read_text(encoding="utf-8"))
        self.assertGreater(len(columns["hardened"]), 100)
        self.assertGreater(protection.share(columns["hardened"], protection.STOPPED), 0.8)

    def test_nothing_to_show_is_said(self):
        with self.assertRaisesRegex(BadUsage, "of no allocator"):
            protection.show(by_hand({"a": {"unknown": (1, 1, 1), "other": (1, 1, 1)}}), None)
        protection.DOCUMENT.write_text("# Nothing\n", encoding="utf-8")
        with self.assertRaisesRegex(BadUsage, "no table of attacks"):
            protection.show(by_hand({"a": TIMES}), None)
        protection.DOCUMENT.write_text(DOCUMENT, encoding="utf-8")
        with self.assertRaisesRegex(NotWritten, "No such file"):
            protection.show(by_hand({"a": TIMES}), pathlib.Path(self.folder.name) / "none" / "picture.svg")


if __name__ == "__main__":
    unittest.main()
