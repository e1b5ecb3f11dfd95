"""Sphinx's settings for tools/site.sh, which says where the documents are."""
import pathlib
import re

project = "hakmem"
root_doc = "index"
exclude_patterns = [".github/*.md", "tools/site"]
extensions = ["myst_parser"]
# As hosts of repositories name them, so that links lead to headings on both.
myst_heading_anchors = 4
# Nothing is coloured that does not say what it is.
highlight_language = "text"
html_theme = "furo"
html_title = "hakmem"
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
# Debian's furo leaves this to a server's /javascript, and a folder of pages has none.
NORMALIZE = "/javascript/normalize.css/"
html_static_path = ["/usr/share" + NORMALIZE]

LINK = re.compile(r"(?<=\]\()(?!https?:)[^)#\s]+(?=\))")
LANGUAGES = {".cc": "c++", ".h": "c++", ".json": "json", ".py": "python", ".sh": "bash", ".toml": "toml", ".yml": "yaml"}


def page_beside(path):
    """The page that stands for a source or a folder, which Sphinx has no pages for."""
    readme = path / "README.md"
    return readme if readme.exists() else path.with_name(path.name + ".md")


def listing(path, root):
    """That page's text. An orphan: no list need have it."""
    head = "---\norphan: true\n---\n# %s\n\n" % path.relative_to(root)
    if path.is_file():
        return "%s```{literalinclude} %s\n:language: %s\n```\n" % (head, path.name, LANGUAGES.get(path.suffix, "text"))
    names = sorted(child.name for child in path.iterdir())
    if any(name.endswith(".md") for name in names):
        return "%s```{toctree}\n:glob:\n\n%s/*\n```\n" % (head, path.name)
    return head + "".join("- `%s`\n" % name for name in names)


def linked_sources(root, documents):
    """What the documents lead to that is no document itself."""
    for document in documents:
        for target in LINK.findall(document.read_text(encoding="utf-8")):
            path = (document.parent / target).resolve()
            if path.suffix != ".md" and path.exists() and root in path.parents:
                yield path


def write_listings(app):
    root = pathlib.Path(app.srcdir).resolve()
    for path in set(linked_sources(root, list(root.rglob("*.md")))):
        page = page_beside(path)
        if not page.exists():
            page.write_text(listing(path, root), encoding="utf-8")


def lead_to_listings(app, docname, source):
    folder = pathlib.Path(app.env.doc2path(docname)).resolve().parent

    def replace(match):
        path = (folder / match.group()).resolve()
        if path.suffix == ".md" or not path.exists():
            return match.group()
        page = page_beside(path)
        return match.group().rstrip("/") + page.as_posix()[len(path.as_posix()):]

    source[0] = LINK.sub(replace, source[0])


def bring_normalize(app, exception):
    if exception is None:
        style = pathlib.Path(app.outdir, "_static/styles/furo.css")
        style.write_text(style.read_text(encoding="utf-8").replace(NORMALIZE, "../"), encoding="utf-8")


def setup(app):
    app.connect("builder-inited", write_listings)
    app.connect("source-read", lead_to_listings)
    app.connect("build-finished", bring_normalize)
