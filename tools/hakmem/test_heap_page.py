#!/usr/bin/python3
"""The page of `hakmem heap --html` in a browser: what it shows, by mouse and by keys, wide, on a phone, in the dark.

Usage: test_heap_page.py HAKMEM      (skipped without a browser: page_browser.py)
"""
import json
import os
import subprocess
import sys
import unittest

from page_browser import PHONE, WIDE, BrowserTest

HAKMEM = os.path.abspath(sys.argv[1])
MIB = 1 << 20
EVIL = "<script>window.evil=1</script><img src=x onerror=window.evil=1>&amp;\"'`${evil}"
LONG = "std::map<" + "std::basic_string<char, std::char_traits<char>>, " * 8 + "int>::operator[](Key const&)"
# What lies at offset 0x100 times its index; nothing else has a name.
FUNCTIONS = ["", "main", "Serve(Request const&)", "ReadTable(char const*)", "Cache::Add(Key)", EVIL, LONG, "Deep(int)"]
NOTHING, MAIN, SERVE, READ, CACHE, WITH_MARKUP, WITH_LENGTH, DEEP, NAMELESS = range(9)


def site(stack, live, peak=None, allocated=None, blocks=10):
    def figures(mib):
        return {"samples": 4 if mib else 0, "blocks": blocks if mib else 0, "bytes": int(mib * MIB)}
    peak = live if peak is None else peak
    return {"kind": "site", "live": figures(live), "peak": figures(peak),
            "allocated": figures(peak if allocated is None else allocated),
            "stack": ["%#x" % (0x10000 + 256 * at) for at in stack]}


def profile(module, sites, pid=7):
    """The file's text: its sites, and their sums in its last line."""
    yield {"schema": "hakmem-heap-profile", "version": 1, "kind": "start", "pid": pid, "program": "server",
           "hakmem": "0.1.0", "variant": "release", "mean_bytes": 524288}
    yield {"kind": "module", "path": str(module), "base": "0x10000", "begin": "0x10000", "end": "0x20000"}
    yield from sites
    sums = {kind: {key: sum(site[kind][key] for site in sites) for key in ("samples", "blocks", "bytes")}
            for kind in ("live", "peak", "allocated")}
    yield {"kind": "end", "sites": len(sites), "lost_samples": 0, **sums}


class HeapPageTest(BrowserTest):
    @classmethod
    def make_page(cls):
        # Names that a process writes for itself need no program.
        module = cls.folder / "perf-7.map"
        module.write_text("".join("%x 100 JS:%s /src/file%d.cc:%d\n" % (256 * at - 128, name, at, 10 * at)
                                  for at, name in enumerate(FUNCTIONS) if name))
        # Beside these, many small places, and one as deep as stacks are.
        small = [site([CACHE + i % 2, DEEP] + [SERVE] * (i // 8) + [MAIN], 1 / 64) for i in range(64)]
        table, evil = [READ, SERVE, MAIN], [WITH_MARKUP, MAIN]
        sites = [site(table, 6), site([CACHE, SERVE, MAIN], 1, 4), site(evil, 2, 8),
                 site([WITH_LENGTH, WITH_MARKUP, SERVE, MAIN], 1, 0), site([DEEP] * 30 + [MAIN], .5),
                 site([NAMELESS], .25), *small]
        cls.first = cls.write("first.heap", profile(module, [site(table, 1), site(evil, 3), *small]))
        cls.second = cls.write("second.heap", profile(module, sites))
        cls.show(cls.page, cls.second)
        cls.diff_page = cls.folder / "diff.html"
        cls.show(cls.diff_page, "--diff", cls.first, cls.second)

    @classmethod
    def write(cls, name, lines):
        path = cls.folder / name
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    @classmethod
    def show(cls, page, *arguments):
        subprocess.run([HAKMEM, "heap", "--html=%s" % page, *arguments],
                       stdout=subprocess.DEVNULL, check=True)

    def all(self, css):
        return self.browser.driver.find_elements("css selector", css)

    def text(self, css):
        return self.all(css)[0].text

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.browser.driver).send_keys(*keys).perform()

    def choose(self, view):
        self.browser.run("document.querySelectorAll('input[name=view]')[arguments[0]].click()", view)

    def current(self):
        return self.browser.run("return document.querySelector('.frame.current').textContent")

    def frame(self, text):
        return next(frame for frame in self.all(".frame") if frame.text == text)

    def places(self):
        return [place.text for place in self.all("#places .name > .link")]

    def test_it_can_be_read_everywhere(self):
        self.assert_readable()
        self.assert_readable(page=self.diff_page)

    def test_it_asks_nobody_and_complains_of_nothing(self):
        self.assert_alone()

    def test_names_are_text(self):
        for page in (self.page, self.diff_page):
            self.browser.open(WIDE, page=page)
            self.assertIsNone(self.browser.run("return window.evil || null"))
            self.assertEqual(self.browser.run("return document.images.length"), 0)
            self.assertTrue(any(EVIL in button.text for button in self.all("#functions .link")))
            self.assertEqual(page.read_text().count("</script>"), 2)

    def test_the_first_view_is_what_is_live(self):
        self.browser.open(WIDE)
        self.assertEqual(self.text("h1"), "server[7]: 11.8 MiB live")
        self.assertEqual([view.text.split("\n")[0] for view in self.all(".view")], ["live", "peak", "allocated"])
        self.assertEqual(self.places()[0], "ReadTable(char const*) at /src/file3.cc:30")
        self.assertEqual(self.all("#places tbody td")[0].text, "6.0 MiB")
        self.assertIn("one byte in 512.0 KiB was sampled", self.text("header"))
        self.assertIn("perf-7.map+0x800", self.browser.page.read_text())

    def test_other_views(self):
        self.browser.open(WIDE)
        self.choose(1)
        self.assertIn("Peak", self.text("#about"))
        self.assertIn("<script>", self.places()[0])
        self.browser.open(WIDE, page=self.diff_page)
        self.assertEqual([self.text("#places .link"), self.text("#places td")],
                         ["ReadTable(char const*) at /src/file3.cc:30", "+5.0 MiB"])
        self.choose(1)
        self.assertEqual(self.text("#places td"), "-1.0 MiB")
        self.assertIn("<script>", self.text("#places .link"))

    def test_a_click_shows_a_part_alone(self):
        self.browser.open(WIDE)
        before = self.places()
        width = self.all("#graph")[0].size["width"]
        self.frame(EVIL).click()
        self.assertAlmostEqual(self.frame(EVIL).size["width"], width, delta=2)
        self.assertEqual(len(self.places()), 1)
        self.assertEqual([row.text for row in self.all("#functions .link")], [LONG, EVIL])
        # Nothing of it was live at the peak, so its caller is shown.
        self.choose(1)
        self.assertAlmostEqual(self.frame("Serve(Request const&)").size["width"], width, delta=2)
        self.assertEqual(self.text("#current strong"), "Serve(Request const&)")
        self.all("#whole")[0].click()
        self.choose(0)
        self.assertEqual(self.places(), before)
        self.assertFalse(self.all("#whole")[0].is_enabled())

    def test_search(self):
        self.browser.open(WIDE)
        self.press("/", "TABLE")
        self.assertEqual(self.text("#found"), "6.0 MiB, 51.1% of what is shown")
        self.assertEqual([frame.text for frame in self.all(".frame.found")], ["ReadTable(char const*)"])
        self.assertEqual(len(self.places()), 1)
        self.press("\ue00c")
        self.assertEqual(self.text("#found"), "")
        self.press("no such function")
        self.assertEqual([self.text("#found"), self.text("#places")], ["nothing found", "None."])

    def test_keys_alone(self):
        self.browser.open(WIDE)
        self.browser.run("document.getElementById('whole').disabled || 0; document.getElementById('search').focus()")
        self.press("\ue004")  # Tab: the button is disabled, so the graph is next
        self.assertEqual(self.browser.run("return document.activeElement.id"), "graph")
        down, right, up, enter, escape = "\ue015", "\ue014", "\ue013", "\ue007", "\ue00c"
        self.press(down, down)
        self.assertEqual(self.current(), "Serve(Request const&)")
        self.press(right)
        self.assertEqual(self.current(), EVIL)
        self.press(enter)
        self.assertEqual(len(self.places()), 1)
        self.assertIn("2.0 MiB", self.text("#current"))
        self.press(up, escape)
        self.assertEqual(self.current(), "main")
        self.assertGreater(len(self.places()), 5)
        self.assertEqual(self.browser.run("return document.activeElement.id"), "graph")
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('aria-activedescendant')"),
                         self.browser.run("return document.querySelector('.current').id"))

    def test_more_rows_and_another_order(self):
        self.browser.open(PHONE)
        self.assertEqual(len(self.places()), 12)
        self.browser.run("document.querySelector('#places > button').click()")
        self.assertEqual(len(self.places()), 62)
        first = lambda: self.text("#functions .link")
        self.assertEqual(first(), "ReadTable(char const*)")
        self.browser.run("document.querySelectorAll('#functions thead button')[1].click()")
        self.assertEqual(first(), "main")
        self.browser.run("document.querySelector('#functions .link').click()")
        self.assertEqual(self.browser.run("return document.getElementById('search').value"), "main")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
