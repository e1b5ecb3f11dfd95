#!/usr/bin/env python3
"""Writes the page's style and script as a C++ source.

Usage: assets.py STYLE SCRIPT…

The scripts become one, in this order; its hash is what the page's policy lets run. Each page has them in it, so they
lose their indentation and the lines that are comments.
"""
import base64
import hashlib
import pathlib
import sys

HEAD = """#include <string_view>

#include "tools/hakmem/profile_page.h"

namespace hakmem::tools {
"""


def constant(name, text):
    return '\nconst std::string_view %s = R"asset(%s)asset";\n' % (name, text)


def short(text):
    lines = (line.strip() for line in text.splitlines())
    return "".join(line + "\n" for line in lines if line and not line.startswith("//"))


def main():
    style, *scripts = (short(pathlib.Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:])
    script = "'use strict';\n(() => {\n%s})();\n" % "".join(scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    print(HEAD + constant("kProfileStyle", style) + constant("kProfileScript", script) +
          constant("kProfileScriptHash", "sha256-" + digest) + "\n}  // namespace hakmem::tools")


if __name__ == "__main__":
    main()
