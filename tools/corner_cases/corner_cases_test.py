#!/usr/bin/env python3
"""Usage: corner_cases_test.py PROBE DOCUMENT RELEASE HARDENED
The variants answer what the document says, the document has every question, and what the driver makes of answers.
"""
import subprocess
import sys
import unittest

import corner_cases

TABLE = "| call | a 1 | b |\n|---|---|---|\n| `f(0)` | NULL | a block |\n| `g()` | 1 | 0 |\n"
COLUMNS = [(("a", "1"), ["NULL", "1"]), (("b", ""), ["a block", "0"])]
QUESTIONS = ["f(0)", "g()"]


class CornerCasesTest(unittest.TestCase):
    def test_the_document(self):
        self.assertEqual(corner_cases.main(["--check", DOCUMENT, PROBE, "hakmem=" + RELEASE,
                                            "hakmem-hardened=" + HARDENED]), 0)
        with open(DOCUMENT, encoding="utf-8") as file:
            known = corner_cases.documented(file.read())
        questions = subprocess.run([PROBE, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()
        for name, answers in known.items():
            self.assertEqual(list(answers), questions, name)
            self.assertNotIn("", answers.values(), name)

    def test_a_table(self):
        self.assertEqual(corner_cases.table(QUESTIONS, COLUMNS), TABLE)
        text = "x\n" + corner_cases.MARKS[0] + TABLE + corner_cases.MARKS[1] + "y\n"
        self.assertEqual(list(corner_cases.check(text, QUESTIONS, COLUMNS)), [])
        self.assertEqual(list(corner_cases.check(text, QUESTIONS, [(("b", ""), ["a block", "1"])])),
                         ["b, g(): 1; the document says 0"])

    def test_a_library_that_is_not_there(self):
        self.assertRaises(SystemExit, corner_cases.column, PROBE, "a=/nowhere/lib.so", QUESTIONS)
        self.assertRaises(SystemExit, corner_cases.ask, PROBE, "", "no question")


if __name__ == "__main__":
    PROBE, DOCUMENT, RELEASE, HARDENED = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
