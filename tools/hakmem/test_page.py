#!/usr/bin/python3
"""The page of `hakmem explain --html` in a browser: wide, on a phone, on paper, in the dark.

Usage: test_page.py HAKMEM      (needs Debian's chromium, chromium-driver and python3-selenium)
"""
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

HAKMEM = os.path.abspath(sys.argv[1])
WIDE, SMALL, PHONE, PAPER = 1280, 400, 360, 703  # CSS pixels; PAPER: A4 without its margins
SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage")
# What does not fit, is too small to read, or has no name for who cannot see it.
FAULTS = """
const bad = [];
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) bad.push('the page is wider than the window');
document.querySelectorAll('details').forEach(d => { d.open = true; });
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const node = texts.currentNode, style = getComputedStyle(node.parentElement);
  if (!node.textContent.trim()) continue;
  const name = node.textContent.trim().slice(0, 40);
  if (parseFloat(style.fontSize) < 10) bad.push(name + ' is ' + style.fontSize + ' high');
  if (node.parentElement.closest('.scroll')) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect();
  if (box.right > width + 1 || box.left < -1) bad.push(name + ' is cut off');
}
document.querySelectorAll('.scroll').forEach(part => {
  if (part.scrollWidth > part.clientWidth + 1) bad.push('a table is cut off: ' + part.getAttribute('aria-label') +
    ' needs ' + part.scrollWidth + ' of ' + part.clientWidth);
});
document.querySelectorAll('.area svg').forEach(svg => {
  const box = svg.getBoundingClientRect();
  if (box.width < 150 || box.height < 100) bad.push('a timeline is ' + box.width + ' x ' + box.height);
});
document.querySelectorAll('[role=img], [role=region]').forEach(part => {
  if (!part.getAttribute('aria-label')) bad.push('no name: ' + part.outerHTML.slice(0, 60));
});
document.querySelectorAll('a[href^="#"]').forEach(link => {
  if (!document.querySelector(link.getAttribute('href'))) bad.push('leads nowhere: ' + link.href);
});
return bad;
"""
# The contrast of every text with what is behind it (WCAG).
CONTRAST = """
const parse = colour => colour.match(/[0-9.]+/g).map(Number);
const light = colour => { const c = parse(colour).slice(0, 3).map(v => { v /= 255;
  return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
  return .2126 * c[0] + .7152 * c[1] + .0722 * c[2]; };
const behind = element => { for (let at = element; at; at = at.parentElement) {
  const colour = getComputedStyle(at).backgroundColor;
  if (parse(colour)[3] !== 0) return colour; } return 'rgb(255,255,255)'; };
const bad = [];
document.querySelectorAll('h1, h2, h3, p, li, dt, dd, th, td, code, pre, a, summary, span').forEach(element => {
  if (!element.textContent.trim() || !element.getClientRects().length) return;
  const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort();
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < 4.5) bad.push(element.tagName + ' ' + ratio.toFixed(1) + ': ' + element.textContent.slice(0, 30));
});
return bad;
"""


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


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hakmem_page.")
        cls.addClassCleanup(folder.cleanup)
        cls.page = pathlib.Path(folder.name, "page.html")
        trace = "".join(json.dumps(line) + "\n" for line in lines()) + "noise\n" + json.dumps(next(lines()))[:50]
        subprocess.run([HAKMEM, "explain", "--symbolizer=none", "--html=%s" % cls.page, "-"], input=trace, text=True,
                       stdout=subprocess.DEVNULL, check=False)
        options = Options()
        options.binary_location = shutil.which("chromium", path="/usr/bin")
        for switch in SWITCHES + ("--user-data-dir=" + os.path.join(folder.name, "profile"),):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        cls.addClassCleanup(cls.driver.quit)

    def open(self, width, dark=False, paper=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width in (SMALL, PHONE)})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "media": "print" if paper else "",
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.get(self.page.as_uri())

    def test_everything_fits_and_can_be_read(self):
        for width in (WIDE, SMALL, PHONE):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    self.open(width, dark)
                    self.assertEqual(self.driver.execute_script(CONTRAST), [])
                    self.assertEqual(self.driver.execute_script(FAULTS), [])

    def test_dark_is_dark_and_paper_is_white(self):
        colour = "return getComputedStyle(document.body).backgroundColor"
        self.open(WIDE, dark=True)
        self.assertEqual(self.driver.execute_script(colour), "rgb(18, 22, 27)")
        self.open(PAPER, dark=True, paper=True)
        self.assertEqual(self.driver.execute_script(colour), "rgb(255, 255, 255)")
        self.assertEqual(self.driver.execute_script(CONTRAST), [])

    def test_it_prints(self):
        self.open(WIDE)
        printed = base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {
            "preferCSSPageSize": True, "paperWidth": 8.27, "paperHeight": 11.69})["data"])
        pages = re.findall(rb"/Type\s*/Page\b", printed)
        self.assertGreaterEqual(len(pages), 2)
        self.assertLess(len(pages), 12)

    def test_it_draws_what_it_says(self):
        self.open(WIDE)
        count = lambda css: len(self.driver.find_elements("css selector", css))
        self.assertEqual(count("figure"), 3)
        self.assertEqual(count("details.quiet figure"), 1)
        for series in ("granted", "cached", "mapped"):
            self.assertEqual(count(".area path." + series), 2)
        self.assertEqual(count(".mark.failed") + count(".mark.rescued"), 14)
        self.assertEqual(count("section[id^=cause]"), 3)

    def test_what_is_not_known_is_not_zero(self):
        self.open(WIDE)
        row = [row.text for row in self.driver.find_elements("css selector", "tr") if "killed 10 " in row.text]
        self.assertEqual(row, ["killed 10 release 0 0 0 not known not known no"])
        self.assertNotIn("0 bytes mapped", self.page.read_text())

    def test_it_asks_nobody_and_complains_of_nothing(self):
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.open(WIDE)
        self.assertEqual(self.driver.get_log("browser"), [])
        asked = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = {entry["params"]["request"]["url"] for entry in asked if entry["method"] == "Network.requestWillBeSent"}
        self.assertEqual({url for url in urls if not url.startswith("data:")}, {self.page.as_uri()})


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
