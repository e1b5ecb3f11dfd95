#!/usr/bin/env python3
"""Keeps docs/misuse.md true: its examples are what is printed, and it has every sentence.

Usage: misuse_doc.py [--update] DOCUMENT LIBRARY PROGRAM...

An example is a fenced block after a line of its own with a program's name and
its argument:

    <!-- example: double_free tiny -->

Addresses and other numbers are another each time, so they are not compared;
every word is. Frames of libc and of start-up code, which differ between
systems, are left out. --update writes what is printed now into DOCUMENT.

Each `// expect` sentence of the programs must fit a heading, in which … stands
for anything. Names of signals are no sentences.
"""

import difflib
import os
import re
import signal
import subprocess
import sys

EXAMPLE = re.compile(r"(<!-- example: (\w+) (\w+) -->\n```\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)
SENTENCE = re.compile(r"^// expect(?:\[[\w ]+\])? \w+: (.+)$", re.MULTILINE)
HEADING = re.compile(r"^### (.+)$", re.MULTILINE)


def tidy(text, program):
    """Without what is this machine's."""
    text = text.replace(program, "/usr/bin/" + os.path.basename(program))
    frames = re.compile(r"^    #\d+ .*(?:/libc\.so\.6|_start\+|/ld-linux).*\n", re.MULTILINE)
    return frames.sub("", text)


def printed(library, program, argument):
    """What the program says on stderr."""
    environment = {"LD_PRELOAD": library, "HAKMEM_CRASH_REPORT": "1"}
    result = subprocess.run([program, argument], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    return tidy(result.stderr, program)


def comparable(text):
    """The text with # for each number."""
    return re.sub(r"\b(0x)?[0-9a-f]*[0-9][0-9a-f.]*\b", "#", text)


def main():
    arguments = sys.argv[1:]
    update = "--update" in arguments
    if update:
        arguments.remove("--update")
    if len(arguments) < 3:
        sys.exit(__doc__)
    document, library = arguments[0], os.path.realpath(arguments[1])
    programs = {os.path.basename(path): os.path.realpath(path) for path in arguments[2:]}
    sources = {path: path + ".cc" for path in arguments[2:]}
    with open(document, encoding="utf-8") as file:
        text = file.read()
    bad = []

    def replaced(match):
        head, name, argument, shown, end = match.groups()
        now = printed(library, programs[name], argument)
        if comparable(now) != comparable(shown):
            bad.append(f"{name} {argument} prints something else:")
            bad.extend(difflib.unified_diff(comparable(shown).splitlines(), comparable(now).splitlines(),
                                            "document", "now", lineterm=""))
        return head + now + end

    new, count = EXAMPLE.subn(replaced, text)
    if count == 0 or count != text.count("<!-- example:"):
        sys.exit(f"{document}: {count} examples can be read")
    if update:
        with open(document, "w", encoding="utf-8") as file:
            file.write(new)
        bad = []
    headings = [re.compile(".*".join(re.escape(part) for part in form.split("…")) + ".*")
                for heading in HEADING.findall(text) for form in heading.split("…, ")]
    for source in sources.values():
        if not os.path.exists(source):
            continue
        with open(source, encoding="utf-8") as file:
            for sentence in SENTENCE.findall(file.read()):
                plain = re.sub(r"^invalid \w+", "invalid free", sentence)
                if plain in signal.Signals.__members__:
                    continue
                if not any(heading.match(plain) for heading in headings):
                    bad.append(f"no heading for: {sentence}")
    print("\n".join(bad + [f"{count} examples"]))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
