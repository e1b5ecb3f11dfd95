"""A browser for the tests of pages: what does not fit, cannot be read, or asks the network.

Needs Debian's chromium, chromium-driver and python3-selenium; without them the tests are skipped, and say so.
"""
import json
import os
import pathlib
import shutil
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None

CHROMIUM = shutil.which("chromium", path="/usr/bin")
DRIVER = shutil.which("chromedriver", path="/usr/bin")
A_DAY_SECONDS = 86400
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
  if (node.parentElement.closest('.scroll, .frame, .figures .link')) continue;
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
document.querySelectorAll('h1, h2, h3, p, li, dt, dd, th, td, code, pre, a, b, strong, label, summary, span, button, .frame').forEach(element => {
  if (!element.textContent.trim() || !element.getClientRects().length) return;
  const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort();
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < 4.5) bad.push(element.tagName + ' ' + ratio.toFixed(1) + ': ' + element.textContent.slice(0, 30));
});
return bad;
"""


class Browser:
    """Chromium on one page, in a folder of its own."""

    def __init__(self, page, folder):
        self.page = pathlib.Path(page)
        options = Options()
        options.binary_location = CHROMIUM
        for switch in SWITCHES + ("--user-data-dir=" + os.path.join(folder, "profile"),):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(DRIVER), options=options)
        # A page takes as long as it takes.
        self.driver.set_page_load_timeout(A_DAY_SECONDS)
        self.driver.set_script_timeout(A_DAY_SECONDS)

    def open(self, width, dark=False, paper=False, page=None, height=800, fragment=""):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width in (SMALL, PHONE)})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "media": "print" if paper else "",
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        # Another fragment alone would not load the page anew.
        self.driver.get("about:blank")
        self.driver.get(pathlib.Path(page or self.page).as_uri() + fragment)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def asked(self, width):
        """What opening the page asks for, beside what it has in itself, and what the browser complains of."""
        for log in ("browser", "performance"):
            self.driver.get_log(log)
        self.open(width)
        complaints = self.driver.get_log("browser")
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        urls = {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}
        return {url for url in urls if not url.startswith("data:")} - {self.page.as_uri()}, complaints


@unittest.skipUnless(webdriver and CHROMIUM and DRIVER,
                     "no browser here: it needs chromium, chromium-driver and python3-selenium")
class BrowserTest(unittest.TestCase):
    """Tests of cls.page, which make_page() has written into cls.folder."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="hakmem_page.")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.page = cls.folder / "page.html"
        cls.make_page()
        cls.browser = Browser(cls.page, folder.name)
        cls.addClassCleanup(cls.browser.driver.quit)

    def assert_readable(self, **how):
        for width in (WIDE, SMALL, PHONE):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    self.browser.open(width, dark, **how)
                    self.assertEqual(self.browser.run(CONTRAST), [])
                    self.assertEqual(self.browser.run(FAULTS), [])

    def assert_alone(self):
        self.assertEqual(self.browser.asked(WIDE), (set(), []))
