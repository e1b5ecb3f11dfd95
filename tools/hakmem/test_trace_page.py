#!/usr/bin/python3
"""The page of `hakmem trace --html` in a browser: memory over time, and the places of planted programs.

Usage: test_trace_page.py HAKMEM LIBRARY PROGRAM      (skipped without a browser: page_browser.py)
"""
import os
import subprocess
import sys
import unittest

from page_browser import WIDE, BrowserTest

HAKMEM, LIBRARY, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:4])
PEAK, NOT_FREED, TEMPORARY, ALLOCATED = range(4)


class TracePageTest(BrowserTest):
    @classmethod
    def make_page(cls):
        for mode in ("leak", "peak"):
            environment = {**os.environ, "LD_PRELOAD": LIBRARY, "HAKMEM_TRACE": str(cls.folder / mode),
                           "HAKMEM_TRACE_STACKS": "1"}
            subprocess.run([PROGRAM, mode], env=environment, check=True)
            cls.show(cls.folder / (mode + ".html"), mode)
        cls.show(cls.page, "leak", "peak")

    @classmethod
    def show(cls, page, *traces):
        subprocess.run([HAKMEM, "trace", "--html=%s" % page, *traces], cwd=cls.folder, stdout=subprocess.DEVNULL,
                       check=True)

    def texts(self, css):
        return [element.text for element in self.browser.driver.find_elements("css selector", css)]

    def first_place(self, view):
        self.browser.run("document.querySelectorAll('input[name=view]')[arguments[0]].click()", view)
        return self.texts("#table .name > .link")[0]

    def test_it_can_be_read_everywhere(self):
        self.assert_readable()

    def test_it_asks_nobody_and_complains_of_nothing(self):
        self.assert_alone()

    def test_a_leak_and_what_is_temporary(self):
        self.browser.open(WIDE, page=self.folder / "leak.html")
        self.assertIn("PlantedLeak", self.first_place(NOT_FREED))
        self.assertIn("Churn", self.first_place(TEMPORARY))
        self.assertEqual(self.texts("#table tbody td.shown")[0], "128.0 MiB")
        self.assertIn("Churn", self.first_place(ALLOCATED))

    def test_a_peak_is_found_after_it(self):
        self.browser.open(WIDE, page=self.folder / "peak.html")
        self.assertIn("PlantedPeak", self.first_place(PEAK))
        self.assertEqual(self.texts("#table tbody td.shown")[0], "32.0 MiB")
        self.assertIn("Background", self.first_place(NOT_FREED))
        self.assertRegex(self.texts("h1")[0], r"at most 40\.\d MiB live, after .* 8\.\d MiB at the end")

    def test_several_traces(self):
        self.browser.open(WIDE)
        self.assertEqual(len(self.texts("figure")), 2)
        self.assertEqual(self.texts("h1"), ["2 processes"])
        self.assertIn("PlantedPeak", self.first_place(PEAK))
        self.assertEqual(len(self.texts(".frame[aria-level='2']")), 2)
        self.assertEqual(self.browser.run("return document.querySelectorAll('figure path.granted').length"), 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
