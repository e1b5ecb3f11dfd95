#!/usr/bin/python3
"""The page of `hakmem heap --html` in a browser: what it shows, by mouse and by keys, wide, on a phone, in the dark.

Usage: test_heap_page.py HAKMEM      (skipped without a browser: page_browser.py)
"""
import json
import os
import re
import subprocess
import sys
import unittest

from page_browser import CONTRAST, SMALL, WIDE, BrowserTest

HAKMEM = os.path.abspath(sys.argv[1])
MIB = 1 << 20
EVIL = "<script>window.evil=1</script><img src=x onerror=window.evil=1>&amp;\"'`${evil}"
LONG = "Index<" + "std::basic_string<char, std::char_traits<char>>, " * 8 + "int>::operator[](Key const&)"
# What lies at CODE and 0x100 times its index; nothing else has a name.
FUNCTIONS = ["", "main", "Serve(Request const&)", "ReadTable(char const*)", "Cache::Add(Key)", EVIL, LONG, "Deep(int)"]
NOTHING, MAIN, SERVE, READ, CACHE, WITH_MARKUP, WITH_LENGTH, DEEP, NAMELESS = range(9)
CODE = 0x10000
SOURCE = "".join('[[gnu::aligned(128)]] void f%d() asm(%s);\n#line %d "/src/file%d.cc"\nvoid f%d() { asm(".skip 224"); }\n'
                 % (at, json.dumps(name), 10 * at, at, at) for at, name in enumerate(FUNCTIONS) if name)
# These are in a library, the others in the program.
IN_LIBRARY = {READ, CACHE}
LIVE, PEAK, FREED, ALLOCATED = range(4)
GROWTH, SHRINKAGE = range(2)
ENTER, ESCAPE, TAB, LEFT, UP, RIGHT, DOWN = "\ue007", "\ue00c", "\ue004", "\ue012", "\ue013", "\ue014", "\ue015"


def site(stack, live, peak=None, allocated=None, blocks=10):
    def figures(mib):
        return {"samples": 4 if mib else 0, "blocks": blocks if mib else 0, "bytes": int(mib * MIB)}
    peak = live if peak is None else peak
    return {"kind": "site", "live": figures(live), "peak": figures(peak),
            "allocated": figures(peak if allocated is None else allocated),
            "stack": ["%#x" % int((0x20000 if at in IN_LIBRARY else 0) + CODE + 256 * at) for at in stack]}


def profile(folder, sites, pid=7):
    """The file's text: its sites, and their sums in its last line."""
    yield {"schema": "hakmem-heap-profile", "version": 1, "kind": "start", "pid": pid, "program": "server",
           "hakmem": "0.1.0", "variant": "release", "mean_bytes": 524288}
    for name, base in (("server", 0), ("libtable.so", 0x20000)):
        yield {"kind": "module", "path": str(folder / name), "base": "%#x" % base,
               "begin": "%#x" % (base + CODE), "end": "%#x" % (base + 2 * CODE)}
    yield from sites
    sums = {kind: {key: sum(site[kind][key] for site in sites) for key in ("samples", "blocks", "bytes")}
            for kind in ("live", "peak", "allocated")}
    yield {"kind": "end", "sites": len(sites), "lost_samples": 0, **sums}


class HeapPageTest(BrowserTest):
    @classmethod
    def make_page(cls):
        for name in ("server", "libtable.so"):
            subprocess.run(["clang++-19", "-gdwarf-4", "-shared", "-nostdlib", "-Wl,-Ttext=%#x" % (CODE + 128), "-xc++", "-",
                            "-o", cls.folder / name], input=SOURCE, text=True, check=True)
        # Beside these, many small places, each with a stack of its own, and one as deep as stacks are.
        small = [site([CACHE + i % 2] + [DEEP] * (1 + i // 2 % 4) + [SERVE] * (i // 8) + [MAIN], 1 / 64) for i in range(64)]
        table, evil = [READ, SERVE, MAIN], [WITH_MARKUP, MAIN]
        sites = [site(table, 6), site([CACHE, SERVE, MAIN], 1, 4), site(evil, 2, 8),
                 site([WITH_LENGTH, WITH_MARKUP, SERVE, MAIN], 1, 0, 1), site([DEEP] * 30 + [MAIN], .5),
                 site([NAMELESS], .25), *small]
        cls.first = cls.write("first.heap", profile(cls.folder, [site(table, 1), site(evil, 3), *small]))
        cls.second = cls.write("second.heap", profile(cls.folder, sites))
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

    def box(self, css, index=0):
        return self.browser.run("return document.querySelectorAll(arguments[0])[arguments[1]].getBoundingClientRect()",
                                css, index)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.browser.driver).send_keys(*keys).perform()

    def click(self, css, index=0):
        self.browser.run("document.querySelectorAll(arguments[0])[arguments[1]].click()", css, index)

    def choose(self, view):
        self.click("input[name=view]", view)

    def fill(self, field, words):
        self.browser.run("const [id, value] = arguments; const field = document.getElementById(id);"
                         "field.value = value; field.dispatchEvent(new Event('input'));", field, words)

    def fragment(self):
        return self.browser.run("return location.hash")

    def current(self):
        return self.text("#current strong")

    # Each by one question to the browser, whose answers come slowly.
    def frame(self, name):
        return self.browser.run("return [...document.querySelectorAll('.frame')].find("
                                "frame => frame.ariaLabel.startsWith(arguments[0] + ': '))", name)

    def names(self):
        return self.browser.run("return [...document.querySelectorAll('.frame')].map("
                                "frame => frame.ariaLabel.replace(/: [^:]*$/, ''))")

    def places(self):
        return self.browser.run("return [...document.querySelectorAll('#table .name > .link')].map(link => link.title)")

    def numbers(self, row=0):
        return self.browser.run("return [...document.querySelectorAll('#table tbody tr')[arguments[0]].cells].slice(0, -1)"
                                ".map(cell => cell.textContent)", row)

    def colour(self, name):
        return self.frame(name).value_of_css_property("background-color")

    def assert_fills_the_graph(self, name):
        self.assertAlmostEqual(self.frame(name).size["width"], self.box("#graph")["width"], delta=2)

    def test_it_can_be_read_everywhere(self):
        self.assert_readable()
        self.assert_readable(page=self.diff_page)
        self.assert_readable(fragment="#table=functions&search=serve")

    def test_it_asks_nobody_and_complains_of_nothing(self):
        self.assert_alone()

    def test_names_are_text(self):
        for page in (self.page, self.diff_page):
            self.browser.open(WIDE, page=page, fragment="#table=functions")
            self.assertIsNone(self.browser.run("return window.evil || null"))
            self.assertEqual(self.browser.run("return document.images.length"), 0)
            self.assertIn(EVIL, self.places())
            self.assertEqual(page.read_text().count("</script>"), 2)

    def test_the_first_screen(self):
        for page in (self.page, self.diff_page):
            for dark in (False, True):
                self.browser.open(WIDE, dark, page=page, height=900)
                graph = self.box("#graph")
                self.assertLessEqual(graph["y"], 160)
                self.assertGreater(graph["width"], WIDE * .4)
                self.assertGreater(self.box("#table")["x"], graph["right"])
                self.assertLess(self.box("#table thead")["y"], 160)
        self.browser.open(WIDE, height=900)
        self.assertLessEqual(self.box("#table tbody tr", 29)["bottom"], 900)
        self.assertEqual(self.browser.run("return scrollY"), 0)

    def test_a_phone(self):
        for dark in (False, True):
            self.browser.open(SMALL, dark)
            graph, table = self.box("#graph"), self.box("#table")
            self.assertLessEqual(graph["y"], 360)
            self.assertGreater(graph["width"], SMALL - 30)
            self.assertGreater(table["y"], graph["bottom"])
            self.assertGreater(table["width"], SMALL - 30)

    def test_the_first_view_is_what_is_live(self):
        self.browser.open(WIDE)
        self.assertEqual(self.text("h1"), "server[7]: 11.8 MiB live")
        self.assertEqual([view.text.split()[0] for view in self.all(".views .choice")],
                         ["live", "peak", "freed", "allocated"])
        self.assertEqual(self.places()[0], "ReadTable(char const*) at /src/file3.cc:30")
        self.assertIn("one byte in 512.0 KiB was sampled", self.text(".notes"))
        self.assertIn("server+0x10800", self.browser.page.read_text())

    def test_all_values_are_on_one_screen(self):
        self.browser.open(WIDE)
        self.assertEqual([cell.text for cell in self.all("#table thead th")],
                         ["share", "±", "live", "peak", "freed", "allocated", "place"])
        self.fill("search", "Cache")
        share, _, *values = self.numbers()
        self.assertEqual([share, *values], ["8.5%", "1.0 MiB", "4.0 MiB", "3.0 MiB", "4.0 MiB"])
        self.click("#table thead button", FREED)
        self.assertEqual(self.all(".views input")[FREED].get_attribute("checked"), "true")
        self.assertEqual(self.numbers()[4], "3.0 MiB")

    def test_other_views(self):
        self.browser.open(WIDE)
        self.choose(PEAK)
        self.assertIn("Peak", self.text("#about"))
        self.assertIn("<script>", self.places()[0])
        self.choose(FREED)
        self.assertEqual([self.numbers()[4], self.numbers(1)[4]], ["6.0 MiB", "3.0 MiB"])

    def test_growth_is_red_and_shrinkage_blue(self):
        def hue():
            red, _, blue = [int(part) for part in re.findall(r"\d+", self.colour("main"))][:3]
            return "red" if red > blue else "blue"
        for dark in (False, True):
            self.browser.open(WIDE, dark, page=self.diff_page)
            self.assertEqual([self.places()[0], self.numbers()[0]],
                             ["ReadTable(char const*) at /src/file3.cc:30", "+5.0 MiB"])
            self.assertEqual(self.numbers()[3:], ["1.0 MiB", "6.0 MiB"])
            self.assertEqual(hue(), "red")
            self.choose(SHRINKAGE)
            self.assertEqual(self.numbers()[0], "-1.0 MiB")
            self.assertIn("<script>", self.places()[0])
            self.assertEqual(hue(), "blue")

    def test_colours_say_the_module(self):
        self.browser.open(WIDE, page=self.page)
        colours = [self.colour(name) for name in ("main", "Serve(Request const&)", "ReadTable(char const*)")]
        self.assertEqual(colours[0], colours[1])
        self.assertNotEqual(colours[0], colours[2])
        self.assertEqual(sorted(button.text for button in self.all("#legend button")), ["libtable.so", "server"])
        swatch = self.all("#legend button:nth-child(1) .swatch, #table .swatch")
        self.assertIn(swatch[0].value_of_css_property("background-color"), colours)
        # In another page, where other places are first, they are the same.
        self.browser.open(WIDE, page=self.diff_page)
        self.choose(2)
        self.assertEqual([self.colour("main"), self.colour("ReadTable(char const*)")], [colours[0], colours[2]])

    def test_every_colour_can_be_read(self):
        add = ("const box = document.getElementById('graph'); for (let i = 0; i < 24; ++i) {"
               "const frame = document.createElement('div'); frame.className = 'frame c' + i; frame.textContent = i;"
               "box.append(frame); } document.documentElement.dataset.colours = arguments[0];"
               "return new Set([...box.children].slice(-24).map(frame => getComputedStyle(frame).backgroundColor)).size")
        for dark in (False, True):
            for colours, different in (("", 24), ("growth", 3), ("shrinkage", 3)):
                self.browser.open(WIDE, dark)
                self.assertEqual(self.browser.run(add, colours), different)
                self.assertEqual(self.browser.run(CONTRAST), [])

    def test_a_click_shows_a_part_alone(self):
        self.browser.open(WIDE)
        before = self.places()
        self.frame(EVIL).click()
        self.assert_fills_the_graph(EVIL)
        self.assertEqual(len(self.places()), 1)
        self.click("input[name=table]", 1)
        self.assertEqual(self.places(), [LONG, EVIL])
        # Nothing of it was live at the peak, so its caller is shown.
        self.choose(PEAK)
        self.assert_fills_the_graph("Serve(Request const&)")
        self.assertEqual(self.current(), "Serve(Request const&)")
        self.click("#reset")
        self.choose(LIVE)
        self.click("input[name=table]", 0)
        self.assertEqual(self.places(), before)
        self.assertFalse(self.all("#reset")[0].is_enabled())

    def test_search(self):
        self.browser.open(WIDE)
        self.press("/", "TABLE\\(")
        self.assertEqual(self.text("#found"), "found: 6.0 MiB, 51.1%")
        self.assertEqual([frame.text for frame in self.all(".frame.found")], ["ReadTable(char const*)"])
        self.assertEqual(len(self.places()), 1)
        self.press(ESCAPE)
        self.assertEqual(self.text("#found"), "")
        # As text, though it is an expression; by place; by module; as an expression.
        for words, text in (("ReadTable(char const*)", "found: 6.0 MiB, 51.1%"), ("file3.cc:30", "found: 6.0 MiB, 51.1%"),
                            ("libtable", "found: 7.5 MiB, 63.8%"), ("^cache|^read", "found: 7.5 MiB, 63.8%"),
                            ("^server$", "found: 11.8 MiB, 100.0%"), ("^erver", "nothing found"),
                            ("main(", "nothing found")):
            self.fill("search", words)
            self.assertEqual(self.text("#found"), text)
        self.assertEqual(self.text("#table"), "None.")

    def test_focus_and_ignore(self):
        self.browser.open(WIDE)
        self.fill("focus", r"^Serve\(")
        self.assertEqual(self.text("#found"), "kept: 8.9 MiB, 75.5%")
        self.assertNotIn("server+0x10800", self.names())
        self.assert_fills_the_graph("main")
        self.assertEqual(self.numbers()[0], "51.1%")
        self.fill("ignore", "ReadTable")
        self.assertEqual(self.text("#found"), "kept: 2.9 MiB, 24.5%")
        self.fill("search", "cache::")
        self.assertEqual(self.text("#found"), "kept: 2.9 MiB, 24.5% · found: 1.4 MiB, 12.2%")
        self.choose(PEAK)
        self.assertEqual(self.text("#found").split(" · ")[0], "kept: 4.9 MiB, 24.7%")
        self.click("#reset")
        self.assertEqual([self.text("#found"), self.fragment()], ["", "#view=peak"])

    def test_the_address_remembers(self):
        self.browser.open(WIDE)
        self.assertEqual(self.fragment(), "")
        self.frame("Serve(Request const&)").click()
        self.choose(PEAK)
        self.fill("ignore", "Deep(int)")
        self.fill("search", "c.che")
        self.click("input[name=table]", 1)
        shown = lambda: [self.text("#found"), self.current(), self.text("#table"), self.names()]
        before, fragment = shown(), self.fragment()
        self.assertIn("kept: 18.3 MiB", before[0])
        self.browser.open(WIDE, fragment=fragment)
        self.assertEqual(shown(), before)
        self.assertEqual(self.fragment(), fragment)
        self.click("input[name=table]", 2)
        self.browser.driver.back()
        self.assertEqual(shown(), before)
        # What nobody can have chosen is left out.
        self.browser.open(WIDE, fragment="#view=constructor&table=x&at=1.2")
        self.assertEqual(self.places()[0], "ReadTable(char const*) at /src/file3.cc:30")

    def test_a_call_tells_its_numbers_and_places(self):
        from selenium.webdriver.common.action_chains import ActionChains
        self.browser.open(WIDE)
        self.assertFalse(self.all("#tip")[0].is_displayed())
        ActionChains(self.browser.driver).move_to_element(self.frame("ReadTable(char const*)")).perform()
        tip = self.text("#tip")
        for words in ("ReadTable(char const*)", "libtable.so · /src/file3.cc:30", "6.0 MiB", "6,291,456 bytes", "51.1%",
                      "10 blocks", "4 samples"):
            self.assertIn(words, tip)
        ActionChains(self.browser.driver).move_to_element(self.all("h1")[0]).perform()
        self.assertFalse(self.all("#tip")[0].is_displayed())
        self.assertEqual(self.current(), "everything")

    def test_a_place_tells_its_callers(self):
        self.browser.open(WIDE)
        self.click("#table .link")
        self.assertEqual(self.current(), "ReadTable(char const*)")
        self.assertEqual([caller.text for caller in self.all(".stack li")],
                         ["ReadTable(char const*) at /src/file3.cc:30", "Serve(Request const&) at /src/file2.cc:20",
                          "main at /src/file1.cc:10"])
        self.assertGreater(len(self.places()), 5)
        self.click("#table .link")
        self.assertEqual(self.all(".stack"), [])
        self.click("#current .actions button", 1)
        self.assertIn("kept: 5.8 MiB", self.text("#found"))

    def test_keys_alone(self):
        self.browser.open(WIDE)
        self.press("/", TAB, TAB)
        self.assertEqual(self.browser.run("return document.activeElement.id"), "ignore")
        self.press(TAB, *[TAB] * len(self.all("#legend button")))  # the button Reset is disabled
        self.assertEqual(self.browser.run("return document.activeElement.id"), "graph")
        self.press(DOWN, DOWN)
        self.assertEqual(self.current(), "Serve(Request const&)")
        self.press(RIGHT)
        self.assertEqual(self.current(), EVIL)
        self.press(LEFT, RIGHT, ENTER)
        self.assertEqual(len(self.places()), 1)
        self.assertIn("2.0 MiB", self.text("#current"))
        self.press(UP, ESCAPE)
        self.assertEqual(self.current(), "main")
        self.assertGreater(len(self.places()), 5)
        self.assertEqual(self.browser.run("return document.activeElement.id"), "graph")
        self.assertEqual(self.browser.run("return document.activeElement.getAttribute('aria-activedescendant')"),
                         self.browser.run("return document.querySelector('.current').id"))

    def test_more_rows_and_another_order(self):
        self.browser.open(SMALL)
        self.assertEqual([len(self.places()), self.text("#count")], [30, "70 places"])
        self.click("#table > button")
        self.assertEqual(len(self.places()), 70)
        self.click("input[name=table]", 1)
        self.assertEqual(self.places()[0], "ReadTable(char const*)")
        self.click("#table thead button", 1)
        self.assertEqual(self.places()[0], "main")
        self.click("#table .link")
        self.assertEqual(self.all("#search")[0].get_attribute("value"), "^main$")
        self.click("input[name=table]", 2)
        self.click("#reset")
        self.assertEqual([(name, *self.numbers(row)) for row, name in enumerate(self.places())],
                         [("server", "4.3 MiB", "36.2%", "11.8 MiB", "100.0%"),
                          ("libtable.so", "7.5 MiB", "63.8%", "7.5 MiB", "63.8%")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
