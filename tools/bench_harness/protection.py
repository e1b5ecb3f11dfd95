"""Price against protection: what allocators take, and what they stop of the attacks in docs/attacks.md."""
import re

import build
import figures
import plots
from errors import BadUsage, NotWritten
from markdown import NOTHING, escape, ratio_cell, table
from report_view import View
from report_words import ratio_text

DOCUMENT = build.ROOT / "docs" / "attacks.md"
# What the document calls hakmem's variants.
COLUMN_OF = {"hakmem": "release", "hakmem-hardened": "hardened"}
STOPPED, NOTICED, UNTRIED = ("detected", "faults", "prevented"), ("detected", "faults"), "–"
# Of report.css, what gives a figure its colours outside of the page.
COLOURS = re.compile(r"\A.*?^}$.*?^}$", re.DOTALL | re.MULTILINE)


def attacks(text):
    """{column of the document's table of attacks: the words in it}."""
    header = re.search(r"^\| attack \| program and case \|(.+)\|$", text, re.MULTILINE)
    if not header:
        raise BadUsage("%s has no table of attacks" % DOCUMENT)
    rows = re.findall(r"^\| .+? \| `\w+ \w+` \|(.+)\|$", text[header.end():], re.MULTILINE)
    names = [name.strip() for name in header.group(1).split("|")]
    # The table of techniques, below, is narrower.
    cells = [row.split("|") for row in rows if row.count("|") == len(names) - 1]
    return {name: [row[column].strip() for row in cells] for column, name in enumerate(names)}


def share(words, counted):
    return sum(word in counted for word in words) / len(words)


def rows_of(shown, columns):
    """[(allocator, its words)], the best protected first; who is not in the document is left out, and so is an attack
    that one of them was not asked."""
    found = [(name, columns[COLUMN_OF.get(name, name)]) for name in shown.names if COLUMN_OF.get(name, name) in columns]
    if not found:
        raise BadUsage("of no allocator in these results does %s say what it stops" % DOCUMENT.name)
    tried = [index for index, words in enumerate(zip(*(words for _, words in found))) if UNTRIED not in words]
    found = [(name, [words[index] for index in tried]) for name, words in found]
    return sorted(found, key=lambda row: (-share(row[1], STOPPED), shown.names.index(row[0])))


def as_table(shown, rows):
    lines = []
    for name, words in rows:
        memory = shown.memory_mean(name)
        times = [shown.group_mean(name, group)[0] for group, _, _ in shown.groups] + [shown.time_mean(name)]
        lines.append([escape(name), *("%d" % sum(word in counted for word in words) for counted in (STOPPED, NOTICED)),
                      *(ratio_cell(time) for time in times), ratio_text(memory) if memory else NOTHING])
    return table(["allocator", "stopped, of %d" % len(rows[0][1]), "detected or faults",
                  *("time, %s" % group for group, _, _ in shown.groups), "time, all", "memory"], lines)


def picture(shown, rows):
    """An SVG that stands alone."""
    looks = figures.styles(shown.names, "hakmem-hardened")
    points = [(name, shown.time_mean(name).value, share(words, STOPPED)) for name, words in rows if shown.time_mean(name)]
    text = plots.protection(points, looks, "protection", "Attacks stopped against time, of " + ", ".join(
        "%s: %.0f%% at %.2f of the time" % (name, 100 * stopped, time) for name, time, stopped in points))
    style = COLOURS.search((build.ROOT / "tools/bench_harness/report.css").read_text(encoding="utf-8")).group()
    head, body = text.split(">", 1)
    return '%s xmlns="http://www.w3.org/2000/svg"><style>%s</style>' \
        '<rect width="100%%" height="100%%" style="fill: var(--paper)"/>%s\n' % (head, style, body)


def show(content, out):
    """The table, for a document; the picture goes to `out`, if that is a path."""
    shown = View(content)
    rows = rows_of(shown, attacks(DOCUMENT.read_text(encoding="utf-8")))
    if out:
        try:
            out.write_text(picture(shown, rows), encoding="utf-8")
        except OSError as error:
            raise NotWritten("cannot write %s: %s" % (out, error.strerror)) from error
    return as_table(shown, rows)
