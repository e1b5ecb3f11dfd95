#!/usr/bin/env python3
"""How hard documents are to read: their long sentences and their pronouns.

Usage: tools/prose.py [FILE…]     (default: every Markdown file and the public header)
Prints a line for each file: its lines, the share of its sentences with more than
35 words, and its pronouns in a hundred words. Exits with 1 if a file has more than
3 % and 2.0, or than its row in tools/prose.txt allows, or if a row there is stale.

A sentence ends with a full stop, a question or exclamation mark, or with its
paragraph, item, heading or cell. Fewer than five words are a name, not a sentence.
Blocks of code are left out; code in a line is one word.
Pronouns are the words of PRONOUNS, and "this", "that", "these" without a noun: before
a verb of VERBS at the beginning of a sentence, or before a punctuation mark; likewise
"one". "That" between two clauses is not counted, nor "its", nor what a question asks for. By this count tcmalloc's design has 2.2.
"""
import fnmatch
import re
import subprocess
import sys
from pathlib import Path

LONG, SHORTEST = 35, 5
MOST_LONG, MOST_PRONOUNS = 3.0, 2.0
PRONOUNS = ("it they them theirs itself themselves those which who whom whose ones what whatever whoever "
            "whichever").split()
VERBS = "is are was were has have had does do did can cannot may must will would means needs makes holds takes".split()
ALONE = (r"(?:this|that|these|one)(?=[,.;:)]|$)|^(?:this|that|these)(?= (?:%s)\b)"
         r"|\bone(?= (?:that|of|is|was|for|in|with|to|by)\b)" % "|".join(VERBS))
PRONOUN = re.compile(r"\b(?:%s)\b(?!['’-])|\b(?:%s)" % ("|".join(PRONOUNS), ALONE), re.IGNORECASE)
BUDGETS = "tools/prose.txt"
HEADERS = ("allocator/hakmem.h",)
# Made from the code, not ours, or forms to fill in.
LEFT_OUT = ("docs/constants.md", "docs/options.md", "fuzz/corpus/", "third_party/", ".github/")

FENCE = re.compile(r"^\s*(```|~~~).*?^\s*\1[^\n]*$", re.DOTALL | re.MULTILINE)
CODE_BLOCK = re.compile(r"(?:(?<=\n\n)|\A)(?: {4}|\t).*(?:\n(?: {4}|\t).*|\n(?=\n* {4}))*")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+|^#+ |^> ?")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_`\[]*[A-Z0-9`])")
WORD = re.compile(r"[A-Za-z0-9_$%/+'’.,:-]*[A-Za-z0-9]")


def comments(text):
    """Of a C header, the comments as paragraphs."""
    found = re.findall(r"/\*(.*?)\*/", text, re.DOTALL)
    return "\n\n".join(re.sub(r"^[ *-]+", "", part, flags=re.MULTILINE).strip() for part in found)


def blocks(text):
    """The paragraphs, items, headings and cells of a Markdown text, each as one line."""
    text = FENCE.sub("\n", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
    text = CODE_BLOCK.sub("", text)
    text = re.sub(r"`(?:[^`\n]|\n(?!\n))+`", "Code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)\s]*\)", r"\1", text)
    block, heading = [], False
    for line in text.split("\n") + [""]:
        item = ITEM.match(line)
        if not line.strip() or item or line.startswith("|") or heading:
            yield " ".join(block)
            block = []
        if line.startswith("|"):
            yield from re.split(r"(?<!\\)\|", line)
        elif line.strip():
            block.append(line[item.end():].strip() if item else line.strip())
        heading = line.startswith("#")


def measure(text):
    """(share of long sentences, pronouns in a hundred words), both in percent."""
    sentences = [sentence for block in blocks(text) for sentence in SENTENCE_END.split(block)]
    lengths = [len(WORD.findall(sentence)) for sentence in sentences]
    counted = [(length, sentence) for length, sentence in zip(lengths, sentences) if length >= SHORTEST]
    words = sum(length for length, _ in counted)
    pronouns = sum(len(PRONOUN.findall(sentence)) for _, sentence in counted if not sentence.rstrip().endswith("?"))
    return (100 * sum(length > LONG for length, _ in counted) / max(1, len(counted)), 100 * pronouns / max(1, words))


def budgets(text):
    """[(pattern, lines or None, long sentences, pronouns)] of rows `PATTERN | LINES | LONG | PRONOUNS`."""
    rows = [[part.strip() for part in line.split("|")] for line in text.splitlines() if line and line[0] != "#"]
    return [(pattern, int(lines) if lines else None, float(long or MOST_LONG), float(pronouns or MOST_PRONOUNS))
            for pattern, lines, long, pronouns in rows]


def documents():
    out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md", *HEADERS],
                         check=True, capture_output=True, text=True).stdout
    return [name for name in sorted(set(out.split("\0"))) if name and not name.startswith(LEFT_OUT)]


def exceeded(text, lines, long, pronouns):
    """The measures of a text, and in words which are above their budgets."""
    now = (text.count("\n"), *measure(text))
    names = ("lines", "long sentences", "pronouns")
    return now, [name for name, is_now, most in zip(names, now, (lines, long, pronouns))
                 if most is not None and round(is_now, 1) > most]


def main(paths):
    rows = budgets(Path(BUDGETS).read_text(encoding="utf-8"))
    known = documents()
    wrong = 0
    for pattern, *_ in rows:
        if not fnmatch.filter(known, pattern):
            print("%s: no document is named %s" % (BUDGETS, pattern))
            wrong += 1
    print("%6s %6s %9s" % ("lines", "long %", "pronouns"))
    for path in paths or known:
        if not Path(path).exists():
            continue  # deleted but not yet committed
        most = next((row[1:] for row in rows if fnmatch.fnmatchcase(path, row[0])), (None, MOST_LONG, MOST_PRONOUNS))
        text = Path(path).read_text(encoding="utf-8")
        text = comments(text) if path.endswith(".h") else text
        now, over = exceeded(text, *most)
        wrong += bool(over)
        print("%6d %6.1f %9.1f  %s%s" % (*now, path, ": TOO MANY " + " AND ".join(over).upper() if over else ""))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
