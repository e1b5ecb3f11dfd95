#!/usr/bin/python3
"""The page of `hakmem explain --html` in a browser: wide, on a phone, on paper, in the dark.

Usage: test_page.py HAKMEM      (needs Debian's chromium, chromium-driver and python3-selenium)
"""
import base64
import json
import os
import re
import subprocess
import sys
import unittest

from page_browser import CONTRAST, PAPER, WIDE, BrowserTest

HAKMEM = os.path.abspath(sys.argv[1])


def lines():
    """A server whose memory grows until its calls fail, and a program with names that are hard to place."""
    head = {"schema": "hakmem-failure", "version": 1}
    path = "/opt/" + "folder/" * 30 + "lib.so"
    yield {**head, "event": "start", "time": "2026-11-20T16:40:00Z", "pid": 7, "program": "server",
           "hakmem": "0.1.0", "variant": "release", "options": {}}
    for second in range(50):
        memory = {"granted": second << 24, "cached": second % 5 << 23, "mapped": (second << 24) + (40 << 20)}
        moment = {**head, "time": "2026-11-20T16:40:%02dZ" % second, "monotonic_ns": second, "pid": 7}
        yield {**moment, "event": "memory", "memory": memory}
        if second % 4 == 0:
            yield {**moment, "event": "failure", "sequence": second + 1, "tid": 7, "program": "server",
                   "call": "malloc", "size": 1 << second % 30, "reason": "MapFail",
                   "detail": "rlimit_as" if second % 8 else "max_map_count",
                   "disposition": "returned_null" if second % 3 else "served_after_purge", "attempts": 2,
                   "limit": {"name": "RLIMIT_AS", "value": 1 << 30, "use": 1 << 30, "source": path},
                   "memory": memory, "modules": [{"path": path, "build_id": "ab" * 20}],
                   "stack": [{"module": 0, "offset": "0x12f0"}, {"address": "0x7fff12345678"}]}
    yield {**head, "event": "failure", "time": "2026-11-20T16:41:00Z", "sequence": 1, "pid": 8, "tid": 8,
           "program": "an-unbroken-name-" * 10 + "<b>", "call": "operator new[]", "size": 2**64 - 2,
           "reason": "Threshold", "detail": "size", "disposition": "threw"}
    # A helper in which nothing happens, and one that is killed at once.
    for second in range(3):
        yield {**head, "event": "memory", "time": "2026-11-20T16:40:%02dZ" % second, "monotonic_ns": 1, "pid": 9,
               "memory": {"granted": 1 << 20, "cached": 0, "mapped": 4 << 20}}
    yield {**head, "event": "start", "time": "2026-11-20T16:40:00Z", "pid": 10, "program": "killed",
           "hakmem": "0.1.0", "variant": "release", "options": {}}


class PageTest(BrowserTest):
    @classmethod
    def make_page(cls):
        trace = "".join(json.dumps(line) + "\n" for line in lines()) + "noise\n" + json.dumps(next(lines()))[:50]
        subprocess.run([HAKMEM, "explain", "--symbolizer=none", "--html=%s" % cls.page, "-"], input=trace, text=True,
                       stdout=subprocess.DEVNULL, check=False)

    def test_everything_fits_and_can_be_read(self):
        self.assert_readable()

    def test_dark_is_dark_and_paper_is_white(self):
        colour = "return getComputedStyle(document.body).backgroundColor"
        self.browser.open(WIDE, dark=True)
        self.assertEqual(self.browser.run(colour), "rgb(18, 22, 27)")
        self.browser.open(PAPER, dark=True, paper=True)
        self.assertEqual(self.browser.run(colour), "rgb(255, 255, 255)")
        self.assertEqual(self.browser.run(CONTRAST), [])

    def test_it_prints(self):
        self.browser.open(WIDE)
        printed = base64.b64decode(self.browser.driver.execute_cdp_cmd("Page.printToPDF", {
            "preferCSSPageSize": True, "paperWidth": 8.27, "paperHeight": 11.69})["data"])
        pages = re.findall(rb"/Type\s*/Page\b", printed)
        self.assertGreaterEqual(len(pages), 2)
        self.assertLess(len(pages), 12)

    def test_it_draws_what_it_says(self):
        self.browser.open(WIDE)
        count = lambda css: len(self.browser.driver.find_elements("css selector", css))
        self.assertEqual(count("figure"), 3)
        self.assertEqual(count("details.quiet figure"), 1)
        for series in ("granted", "cached", "mapped"):
            self.assertEqual(count(".area path." + series), 2)
        self.assertEqual(count(".mark.failed") + count(".mark.rescued"), 14)
        self.assertEqual(count("section[id^=cause]"), 3)

    def test_what_is_not_known_is_not_zero(self):
        self.browser.open(WIDE)
        row = [row.text for row in self.browser.driver.find_elements("css selector", "tr") if "killed 10 " in row.text]
        self.assertEqual(row, ["killed 10 release 0 0 0 not known not known no"])
        self.assertNotIn("0 bytes mapped", self.page.read_text())

    def test_it_asks_nobody_and_complains_of_nothing(self):
        self.assert_alone()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
