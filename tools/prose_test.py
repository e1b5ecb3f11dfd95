#!/usr/bin/env python3
"""What tools/prose.py counts, and when it fails."""
import os
import pathlib
import unittest

import prose

LONG = "The allocator " + "word " * 34 + "ends."
SHORT = "The allocator returns a block of this class."


class ProseTest(unittest.TestCase):
    def expect(self, text, long, pronouns):
        now = prose.measure(text)
        self.assertAlmostEqual(now[0], long, places=1)
        self.assertAlmostEqual(now[1], pronouns, places=1)

    def test_long_sentences(self):
        self.expect(SHORT, 0, 0)
        self.expect(LONG, 100, 0)
        self.expect(LONG + "\n" + SHORT, 50, 0)
        self.expect("%s %s\n\n- %s\n- %s\n" % (SHORT, SHORT, SHORT, LONG), 25, 0)
        self.expect("| a | b |\n|---|---|\n| %s | %s |\n" % (SHORT, LONG), 50, 0)

    def test_an_item_a_cell_and_a_heading_end_a_sentence(self):
        half = "the allocator " + "word " * 20
        for text in ("- %s\n- %s", "| %s |\n| %s |", "## %s\n%s", "%s\n\n%s", "1. %s\n2. %s"):
            self.expect(text % (half, half), 0, 0)
        self.expect("%s\n%s" % (half, half), 100, 0)

    def test_code_is_left_out(self):
        code = "it is one of those that they are\n"
        self.expect("%s\n\n    %s\n%s\n" % (SHORT, code, SHORT), 0, 0)
        self.expect("%s\n\n```\n%s```\n%s\n" % (SHORT, code, SHORT), 0, 0)
        self.expect("The allocator calls `it of them which` and `one` here.", 0, 0)
        self.expect("See [the page of the allocator](it-is.md#one-of-them) for this.", 0, 100 / 8)

    def test_pronouns(self):
        for word in ("it", "They", "which", "what", "whoever", "ones"):
            self.expect("The allocator returns %s to the kernel." % word, 0, 100 / 7)
        self.expect("This is a block of the allocator.", 0, 100 / 7)
        self.expect("The allocator frees one of four blocks, not that.", 0, 200 / 9)
        self.expect("This block has its own page, so that one page is enough.", 0, 0)

    def test_questions(self):
        self.expect("Which block is one of those that it has?", 0, 0)

    def test_comments_of_a_header(self):
        text = "/* The first block has a page. It\n * is a small one. */\nint it(void);\n"
        self.assertEqual(prose.comments(text), "The first block has a page. It\nis a small one.")

    def test_budgets(self):
        rows = prose.budgets("# a comment\na.md | 10 | | 5.5\nb/* | | 7 |\n")
        self.assertEqual(rows, [("a.md", 10, 3.0, 5.5), ("b/*", None, 7.0, 2.0)])
        self.assertEqual(prose.exceeded(SHORT + "\n", 1, 3.0, 2.0)[1], [])
        self.assertEqual(prose.exceeded(LONG + "\n\n", 1, 3.0, 2.0)[1], ["lines", "long sentences"])
        self.assertEqual(prose.exceeded("The allocator returns it to it.\n", None, 3.0, 2.0)[1], ["pronouns"])

    def test_the_documents_keep_to_their_budgets(self):
        os.chdir(pathlib.Path(__file__).resolve().parent.parent)
        self.assertEqual(prose.main([]), 0)


if __name__ == "__main__":
    unittest.main()
