#!/usr/bin/python3
"""The page of a benchmark run in a browser: at two widths, on paper and in the dark.

Usage: HAK_NIGHTLY=1 tools/bench_harness/browser_test.py      (needs Debian's chromium and chromium-driver)
       tools/bench_harness/browser_test.py shots PAGE.html FOLDER      (to look at them)
"""
import base64
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

import example_results
import report

A_DAY_SECONDS = 86400
WIDE, PHONE, PAPER = 1280, 360, 703  # CSS pixels; PAPER: A4 without its margins
SWITCHES = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--disable-dev-shm-usage")
# What is wrong with the figures: too small, or with text that is cut off or hard to read.
FIGURES = """
const bad = [];
document.querySelectorAll('details').forEach(d => { d.open = true; });
document.querySelectorAll('figure > svg').forEach(svg => {
  const frame = svg.getBoundingClientRect(), name = svg.getAttribute('aria-label');
  if (frame.width < 200 || frame.height < 40)
    bad.push(name + ' is ' + frame.width + ' x ' + frame.height);
  if (!svg.querySelector('path, use')) bad.push(name + ' is empty');
  const scale = frame.width / svg.viewBox.baseVal.width;
  svg.querySelectorAll('text').forEach(text => {
    const size = parseFloat(getComputedStyle(text).fontSize) * scale;
    if (size < 9) bad.push(name + ': "' + text.textContent + '" is ' + size + ' px high');
    const box = text.getBoundingClientRect();
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
        || box.bottom > frame.bottom + 1) bad.push(name + ': "' + text.textContent + '" is cut off');
  });
});
return bad;
"""


class Browser:
    """A Chromium of its own with nothing kept from another."""

    def __init__(self):
        programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
        if not all(programs):
            raise RuntimeError("no Chromium to look at the page with: install Debian's chromium "
                               "and chromium-driver (tools/bench_harness/packages.txt)")
        self.profile = tempfile.TemporaryDirectory(prefix="bench_browser.")
        options = Options()
        options.binary_location = programs[0]
        for switch in SWITCHES + ("--user-data-dir=" + self.profile.name,):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(programs[1]), options=options)
        # A page takes as long as it takes.
        self.driver.set_page_load_timeout(A_DAY_SECONDS)
        self.driver.set_script_timeout(A_DAY_SECONDS)

    def close(self):
        self.driver.quit()
        self.profile.cleanup()

    def open(self, path, width, dark=False, paper=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width == PHONE})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "media": "print" if paper else "",
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.get(path.as_uri())

    def run(self, script):
        return self.driver.execute_script(script)

    def picture(self):
        """The whole page as PNG."""
        shot = self.driver.execute_cdp_cmd("Page.captureScreenshot", {
            "format": "png", "captureBeyondViewport": True})
        return base64.b64decode(shot["data"])

    def print(self):
        return base64.b64decode(self.driver.execute_cdp_cmd("Page.printToPDF", {
            "preferCSSPageSize": True, "paperWidth": 8.27, "paperHeight": 11.69})["data"])


def long_names(results):
    """The same results with names that are hard to place."""
    for program in results["programs"]:
        program["title"] = "an-unbroken-title-that-goes-on-" * 3 + program["title"]
    for peer in results["peers"]:
        peer["version"] = "git-" + "0123456789abcdef" * 4
    for failure in results["summary"]["failures"]:
        failure["detail"] = "x" * 300
    results["command"] += ["--peer", "name=" + "folder/" * 40 + "lib.so"]
    return results


@unittest.skipUnless(os.environ.get("HAK_NIGHTLY") == "1", "a browser takes its time, and has limits of its own: HAK_NIGHTLY=1")
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="bench_page.")
        cls.addClassCleanup(folder.cleanup)
        cls.full = pathlib.Path(folder.name, "full.html")
        report.write(example_results.generate(), cls.full, example_results.history())
        cls.long = pathlib.Path(folder.name, "long.html")
        report.write(long_names(example_results.generate(repeats=2)), cls.long)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def each_page(self, check):
        """Calls check(width) with each page at each width open."""
        for path in (self.full, self.long):
            for width in (WIDE, PHONE):
                with self.subTest(page=path.stem, width=width):
                    self.browser.open(path, width)
                    check(width)

    def test_fits_its_width(self):
        def check(width):
            self.browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            self.assertEqual(self.browser.run("return innerWidth"), width)
            self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"),
                                 width)

        self.each_page(check)

    def test_says_nothing_on_the_console(self):
        self.each_page(lambda _: self.assertEqual(self.browser.driver.get_log("browser"), []))

    def test_loads_nothing(self):
        self.browser.driver.get_log("performance")
        self.browser.open(self.full, WIDE)
        events = [json.loads(entry["message"])["message"]
                  for entry in self.browser.driver.get_log("performance")]
        self.assertEqual([event["params"]["request"]["url"] for event in events
                          if event["method"] == "Network.requestWillBeSent"], [self.full.as_uri()])

    def test_figures_can_be_read(self):
        def check(_):
            self.assertGreater(self.browser.run(
                "return document.querySelectorAll('figure > svg').length"), 10)
            self.assertEqual(self.browser.run(FIGURES), [])

        self.each_page(check)

    def test_each_id_is_there_once(self):
        self.browser.open(self.full, WIDE)
        twice, dangling = self.browser.run("""
            const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
            const links = [...document.querySelectorAll('[href^="#"]')].map(
                e => e.getAttribute('href').slice(1));
            return [ids.filter((id, i) => ids.indexOf(id) != i),
                    links.filter(link => !ids.includes(link))];""")
        self.assertEqual((twice, dangling), ([], []))

    def test_the_dark_is_dark(self):
        colors = """
            const light = c => c.match(/[0-9.]+/g).slice(0, 3).reduce((a, b) => a + +b, 0) / 3;
            return [light(getComputedStyle(document.body).backgroundColor),
                    light(getComputedStyle(document.body).color),
                    light(getComputedStyle(document.querySelector('figure text')).fill)];"""
        self.browser.open(self.full, WIDE, dark=True)
        page, ink, plot = self.browser.run(colors)
        self.assertTrue(page < 60 < 130 < min(ink, plot), (page, ink, plot))
        self.browser.open(self.full, WIDE)
        page, ink, plot = self.browser.run(colors)
        self.assertTrue(page > 200 > 130 > max(ink, plot), (page, ink, plot))

    def test_prints(self):
        self.browser.open(self.full, PAPER, dark=True, paper=True)
        self.assertEqual(self.browser.run("""
            return [...document.querySelectorAll('table, pre, figure > svg')].filter(e =>
                e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 200))
            """), [])
        self.assertEqual(self.browser.run(
            "return getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        self.browser.open(self.full, WIDE)
        paper = self.browser.print()
        self.assertTrue(paper.startswith(b"%PDF-"))
        pages = len(re.findall(rb"/Type\s*/Page\b", paper))
        self.assertTrue(4 <= pages <= 30, pages)
        self.assertEqual(self.browser.run(
            "return document.querySelectorAll('details:not([open])').length"), 0,
            "a folded part would be missing on paper")


def shots(page, folder):
    browser = Browser()
    try:
        for name, width, dark in (("wide", WIDE, False), ("phone", PHONE, False),
                                  ("wide_dark", WIDE, True), ("phone_dark", PHONE, True)):
            browser.open(page.resolve(), width, dark)
            (folder / (name + ".png")).write_bytes(browser.picture())
        (folder / "page.pdf").write_bytes(browser.print())
    finally:
        browser.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["shots"]:
        shots(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    else:
        unittest.main()
