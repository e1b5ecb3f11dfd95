#!/usr/bin/env python3
"""Writes the library as a C++ source that needs no Bazel.

usage: tools/amalgamate.py OUTPUT_DIRECTORY

hakmem.cc is all that the Bazel build's products are compiled from, in the order
of their includes; hakmem_new.cc is the little that catches exceptions. dist/
has what builds and installs them, and is no place for the output. Bazel is asked
which sources there are; HAK_BAZEL names another command line for it.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
# Prints the revision that products name.
STATUS = "tools/build/workspace_status.sh"
# What is compiled with exceptions; in one source with these, malloc would lose its tail calls.
CATCHING = ["allocator/frontend/new_failure.cc"]
# The order in which a compiler tests which one is wanted; the last is the default.
VARIANTS = ["tracing", "hardened", "debug", "release"]

INCLUDE_OURS = re.compile(r'\s*#\s*include\s+"([^"]+)"')
INCLUDE_SYSTEM = re.compile(r"\s*#\s*include\s+<([^>]+)>")
CONDITION = re.compile(r"\s*#\s*(if|endif)")
GUARD = re.compile(r"^#(?:ifndef|define|endif)\b.*\bHAKMEM_[A-Z0-9_]+_H_\b.*$", re.MULTILINE)
ABSL = re.compile(r"\bABSL_[A-Z_]+\b")

# A literal or a comment, or a name that is no member's and not qualified but by hakmem.
TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\'|//[^\n]*|/\*.*?\*/|(?:(?<![\w.:>])|(?<=hakmem::))[A-Za-z_]\w*', re.DOTALL)
TYPE = re.compile(r"^(?:template <.*>\s*)?(?:struct|class|enum class|enum|union)\s+(?:alignas\([^)]*\)\s+)?([A-Za-z_]\w*)[^;(]*[{;]", re.MULTILINE)
ALIAS = re.compile(r"^using\s+([A-Za-z_]\w*)\s*=", re.MULTILINE)
VARIABLE = re.compile(r"^[A-Za-z_][\w:<>,&* \n]*?[\s&*]((?:k[A-Z]|g_|[a-z])\w*)(?:\[[^\]]*\])*\s*(?:ABSL_\w+\([^)]*\)\s*)?(?:=[^=]|\{|;)", re.MULTILINE)
FUNCTION = re.compile(r"^[A-Za-z_\[][^\n;={}#(]*?(?<![\w:])([A-Z]\w*[a-z]\w*)\(", re.MULTILINE)


def fail(sentence):
    print("hakmem: " + sentence, file=sys.stderr)
    sys.exit(1)


def bazel(*arguments):
    command = shlex.split(os.environ.get("HAK_BAZEL", "bazel")) + list(arguments)
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        fail("cannot run %s: %s (tools/setup.sh installs bazel)" % (command[0], error.strerror))
    if done.returncode != 0:
        fail(shlex.join(command) + ": " + done.stderr.strip())
    return done.stdout


def product_sources():
    """Paths in the tree of all that the products are compiled from."""
    products = " + ".join("//allocator:preload_" + variant for variant in VARIANTS)
    labels = bazel("query", "--noshow_progress", "--order_output=no",
                   'kind("source file", deps(%s))' % products)
    paths = [label[2:].replace(":", "/", 1).lstrip("/") for label in labels.split() if label.startswith("//allocator")]
    return sorted(path for path in paths if re.search(r"\.(cc|h|inc)$", path))


def unnamed_parts(text):
    """What stands in unnamed namespaces."""
    return "\n".join(re.findall(r"^namespace \{$(.*?)^\}  // namespace$", text, re.MULTILINE | re.DOTALL))


def declared(text):
    """Names that lines at the left margin declare."""
    return {name for pattern in (TYPE, ALIAS, VARIABLE, FUNCTION) for name in pattern.findall(text)}


def rename(text, names, suffix):
    return TOKEN.sub(lambda token: token[0] + suffix if token[0] in names else token[0], text)


class Amalgamation:
    """One source in the making."""

    def __init__(self, texts):
        self.texts = texts
        self.system = set()
        self.emitted = set()
        self.out = []

    def include(self, path):
        if path.startswith("absl/"):
            return
        if path not in self.texts:
            fail("%s is included, but no source of the products" % path)
        if path.endswith(".h"):
            if path in self.emitted:
                return
            self.emitted.add(path)
        self.emit(path, self.texts[path])

    def emit(self, path, text):
        self.out.append("// --- " + path)
        conditions = 0
        for line in GUARD.sub("", text).split("\n"):
            ours = INCLUDE_OURS.match(line)
            system = INCLUDE_SYSTEM.match(line)
            condition = CONDITION.match(line)
            if condition:
                conditions += 1 if condition[1] == "if" else -1
            if ours:
                self.include(ours[1])
            # What only some systems have stays where that is asked.
            elif system and conditions == 0:
                self.system.add(system[1])
            else:
                self.out.append(line)

    def emit_products(self):
        for number, variant in enumerate(VARIANTS):
            word = "#if" if number == 0 else "#elif"
            last = number == len(VARIANTS) - 1
            self.out.append("#else" if last else "%s defined(HAKMEM_BUILD_%s)" % (word, variant.upper()))
            self.include(product_path(variant))
        self.out.append("#endif")

    def write(self, output):
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(self.out))
        name, revision = subprocess.check_output([ROOT / STATUS], cwd=ROOT, text=True).split()
        macros = sorted(set(ABSL.findall(text)))
        bare = {name for name in macros if not re.search(name + r"\(", text)}
        head = ["// Part of hakmem, made by tools/amalgamate.py: see README.md.",
                "#ifndef _GNU_SOURCE", "#define _GNU_SOURCE", "#endif",
                "// Where they fail is in a C++ library, which hakmem does without.",
                "#undef _GLIBCXX_ASSERTIONS", "#define _GLIBCXX_NO_ASSERTIONS"]
        head += ["#define HAK_AMALGAMATED", "#ifndef " + name, '#define %s "%s"' % (name, revision), "#endif"]
        head += ["#include <%s>" % name for name in sorted(self.system)]
        head.append("// What abseil's annotations are to a compiler that doesn't check them.")
        head += ["#define %s%s" % (name, "" if name in bare else "(...)") for name in macros]
        output.write_text("\n".join(head) + "\n" + text + "\n", encoding="utf-8")


def product_path(variant):
    return "allocator/frontend/%s.cc" % variant


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def clashes(texts, sources):
    """Of each source, the names in unnamed namespaces that another file declares, too."""
    own = {path: declared(unnamed_parts(texts[path])) for path in sources}
    shared = [declared(text) for path, text in texts.items() if path.endswith((".h", ".inc"))]
    shared += [declared(texts[path].replace(unnamed_parts(texts[path]), "")) for path in sources]
    return {
        path: names & set().union(*shared, *(theirs for other, theirs in own.items() if other != path))
        for path, names in own.items()
    }


def included(texts, path):
    """The headers that a source includes, and those that they include."""
    found, ahead = set(), [path]
    while ahead:
        named = {line[1] for line in map(INCLUDE_OURS.match, texts[ahead.pop()].split("\n")) if line}
        ahead += [header for header in named - found if header in texts]
        found |= named
    return found & texts.keys()


def double_meanings(texts, sources):
    """Of each source, the names in unnamed namespaces that a header declares there, too: a new name would be given to both."""
    return {
        path: declared(unnamed_parts(texts[path])) & set().union(*(declared(texts[header]) for header in included(texts, path)))
        for path in sources
    }


def amalgamate(texts, output):
    apart = [product_path(variant) for variant in VARIANTS] + CATCHING
    sources = [path for path in texts if path.endswith(".cc") and path not in apart]
    for path, names in double_meanings(texts, sources).items():
        if names:
            fail("%s and a header that it includes both declare %s: rename the one in the source" % (path, ", ".join(sorted(names))))
    main_source = Amalgamation(texts)
    for path in texts:
        if path.endswith(".h"):
            main_source.include(path)
    for path, names in clashes(texts, sources).items():
        stem = "".join(word.capitalize() for word in pathlib.Path(path).stem.split("_"))
        main_source.emit(path, rename(texts[path], names, "In" + stem))
    main_source.emit_products()
    main_source.write(output / "hakmem.cc")
    catching = Amalgamation(texts)
    for path in CATCHING:
        catching.include(path)
    catching.write(output / "hakmem_new.cc")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    output = pathlib.Path(sys.argv[1])
    if output.resolve() in (ROOT, DIST) or DIST in output.resolve().parents:
        fail("%s has what a source release is made from: name another folder" % output.resolve())
    output.mkdir(parents=True, exist_ok=True)
    amalgamate({path: read(path) for path in product_sources()}, output)
    shutil.copytree(DIST, output, dirs_exist_ok=True, ignore=shutil.ignore_patterns("python", "rust"))
    for path in ["allocator/hakmem.h", "LICENSE"] + ["allocator/frontend/" + name for name in ("copy_names.txt", "exports.map")]:
        shutil.copy(ROOT / path, output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
