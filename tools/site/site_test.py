#!/usr/bin/env python3
"""Builds the site from the documents as they are (with HAK_NIGHTLY=1), and sites of a few words."""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Elements that load what they name, and where they name it.
LOADING = {"audio": "src", "embed": "src", "iframe": "src", "img": "src", "link": "href", "object": "data",
           "script": "src", "source": "src", "video": "src"}
# Also from the root of a server, which a folder of pages has not.
CSS_LOADING = re.compile(r"(?:url\(|@import)\s*[\"']?\s*((?:https?:)?/[^\"')]+)")
# Words, as the index has them, and a page that the search has to lead to.
WORDS = {"hakmem_depot": "docs/tuning", "jemalloc": "docs/choosing", "dockerfil": "docs/quick_start/container",
         "madv_dontne": "docs/decisions/0013-madv-dontneed", "hakmem_get_statist": "allocator/hakmem.h"}


CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`|^    .*?$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def documents():
    return subprocess.run(["git", "ls-files", "*.md", ":!.github", ":!tools"], cwd=ROOT, check=True, capture_output=True,
                          text=True).stdout.split()


class Page(html.parser.HTMLParser):
    """What a page loads, what it leads to, and where it can be led to."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.ids = [], [], set()
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.ids.update(value for key, value in attributes if key in ("id", "name") and value)
        if values.get(LOADING.get(tag)):
            self.loads.append(values[LOADING[tag]])
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])


def is_elsewhere(link):
    parts = urllib.parse.urlsplit(link)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ftp")


def build(output, root=ROOT):
    return subprocess.run([root / "tools/site.sh", output], capture_output=True, text=True)


class DocumentsTest(unittest.TestCase):
    """What takes no Sphinx."""

    @staticmethod
    def parts(path):
        """The headings, as links name them."""
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", path.read_text(encoding="utf-8"))
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}

    def test_links_lead_to_files_and_their_parts(self):
        links = 0
        for document in documents():
            path = ROOT / document
            for link in LINK.findall(CODE.sub("", path.read_text(encoding="utf-8"))):
                if is_elsewhere(link):
                    continue
                name, _, part = link.partition("#")
                target = path.parent / name if name else path
                self.assertTrue(target.exists(), "%s leads to %s" % (document, link))
                if part and target.suffix == ".md":
                    self.assertIn(part, self.parts(target), "%s leads to %s" % (document, link))
                links += 1
        self.assertGreater(links, 100)


@unittest.skipUnless(os.environ.get("HAK_NIGHTLY") == "1", "the whole site takes its time: HAK_NIGHTLY=1")
class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.site = pathlib.Path(folder.name).resolve()
        done = build(cls.site)
        if done.returncode != 0:
            raise AssertionError(done.stdout + done.stderr)
        cls.pages = {path: Page(path) for path in cls.site.rglob("*.html")}

    def test_has_a_page_for_each_document(self):
        self.assertGreater(len(documents()), 60)
        for document in documents():
            self.assertIn((self.site / document).with_suffix(".html"), self.pages)

    def test_loads_nothing_from_the_network(self):
        loads = 0
        for path, page in self.pages.items():
            loads += len(page.loads)
            self.assertEqual([load for load in page.loads if is_elsewhere(load)], [], path)
            self.assertEqual(CSS_LOADING.findall(page.text), [], path)
        self.assertGreater(loads, len(self.pages))
        for path in self.site.rglob("*.css"):
            self.assertEqual(CSS_LOADING.findall(path.read_text(encoding="utf-8")), [], path)

    def test_what_it_loads_and_leads_to_is_there(self):
        for path, page in self.pages.items():
            for link in page.loads + page.links:
                parts = urllib.parse.urlsplit(link)
                if is_elsewhere(link) or parts.scheme:
                    continue
                target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
                self.assertTrue(target.is_file(), "%s leads to %s" % (path, link))
                if parts.fragment and target in self.pages:
                    self.assertIn(urllib.parse.unquote(parts.fragment), self.pages[target].ids | {"#"},
                                  "%s leads to %s" % (path, link))

    def test_search_knows_words(self):
        script = (self.site / "searchindex.js").read_text(encoding="utf-8")
        index = json.loads(script.removeprefix("Search.setIndex(").removesuffix(")"))
        for word, name in WORDS.items():
            pages = set()
            for kind in ("terms", "titleterms"):
                found = index[kind].get(word, [])
                pages.update(index["docnames"][number] for number in (found if isinstance(found, list) else [found]))
            self.assertIn(name, pages, word)


class StrictnessTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools/site").mkdir(parents=True)
        shutil.copy(ROOT / "tools/site.sh", self.root / "tools")
        shutil.copy(ROOT / "tools/site/conf.py", self.root / "tools/site")
        self.write("tools/site/index.md", "# A site\n\n```{toctree}\na\nb\n```\n")
        self.write("a.md", "# A\n\n[b](b.md), [its part](b.md#the-part), [a source](source.h)\n")
        self.write("b.md", "# B\n\n## The part\n\n[a](a.md)\n")
        self.write("source.h", "int f(void);\n")
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def write(self, path, text):
        (self.root / path).write_text(text)

    def fails(self, *words):
        done = build(self.root / "out", self.root)
        self.assertNotEqual(done.returncode, 0)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_links_lead_to_pages_parts_and_sources(self):
        done = build(self.root / "out", self.root)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('href="b.html#the-part"', (self.root / "out/a.html").read_text())
        self.assertIn('href="source.h.html"', (self.root / "out/a.html").read_text())
        self.assertIn("f", (self.root / "out/source.h.html").read_text())

    def test_a_link_that_leads_nowhere(self):
        self.write("b.md", "# B\n\n## The part\n\n[c](c.md)\n")
        self.fails("b.md", "c.md")

    def test_a_link_to_a_part_that_is_not_there(self):
        self.write("a.md", "# A\n\n[b](b.md#another-part)\n")
        self.fails("a.md", "another-part")

    def test_a_link_to_a_source_that_is_not_there(self):
        self.write("a.md", "# A\n\n[b](none.h)\n")
        self.fails("a.md", "none.h")

    def test_a_document_that_no_list_has(self):
        self.write("c.md", "# C\n")
        self.fails("c.md", "toctree")


if __name__ == "__main__":
    unittest.main()
