#!/usr/bin/env python3
"""What allocators answer to the C library's corner cases, as a Markdown table.

Usage: tools/corner_cases/corner_cases.py PROBE NAME[:VERSION]=LIBRARY…
       tools/corner_cases/corner_cases.py --update DOCUMENT PROBE NAME[:VERSION]=LIBRARY…
       tools/corner_cases/corner_cases.py --check DOCUMENT PROBE NAME=LIBRARY…
PROBE is the built tools/corner_cases/probe; a LIBRARY is preloaded, and none is
needed for the system's own (glibc=). Each question is asked in a process of its
own. --update writes the table into the document, between its two marks. --check
compares the named columns, and exits with 1 if one is not what the document has.
"""
import os
import pathlib
import re
import subprocess
import sys

MARKS = ("<!-- corner cases -->\n", "<!-- end of corner cases -->\n")


def ask(probe, library, word):
    """The answer; in words, where there is none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HAKMEM_", "LD_"))}
    if library:
        environment["LD_PRELOAD"] = str(pathlib.Path(library).resolve())
    done = subprocess.run([probe, word], env=environment, capture_output=True, text=True)
    if done.returncode == 2:
        raise SystemExit("the probe does not know %s" % word)
    return done.stdout.strip() if done.returncode == 0 else "ends the process"


def column(probe, argument, questions):
    """(heading, answers) of one NAME[:VERSION]=LIBRARY."""
    name, _, library = argument.partition("=")
    name, _, version = name.partition(":")
    if library and not os.path.exists(library):
        raise SystemExit("%s: no such file" % library)
    if library and not os.path.samefile(ask(probe, library, "--file"), library):
        raise SystemExit("%s: another malloc stands before it" % library)
    version = version or ask(probe, library, "--version")
    return (name, version), [ask(probe, library, question) for question in questions]


def table(questions, columns):
    """A row for each question, a column for each allocator."""
    names = ["%s %s" % heading if heading[1] else heading[0] for heading, _ in columns]
    lines = ["| call | %s |" % " | ".join(names), "|---" * (len(names) + 1) + "|"]
    for number, question in enumerate(questions):
        lines.append("| `%s` | %s |" % (question, " | ".join(answers[number] for _, answers in columns)))
    return "\n".join(lines) + "\n"


def documented(text):
    """{name of a column: {question: answer}} of the table in a document."""
    part = text.split(MARKS[0])[1].split(MARKS[1])[0]
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in part.splitlines()]
    return {heading.split()[0]: {row[0].strip("`"): row[place] for row in rows[2:]}
            for place, heading in enumerate(rows[0]) if place > 0}


def check(document, questions, columns):
    """The differences between columns and the document's, as sentences."""
    known = documented(document)
    for (name, _), answers in columns:
        for question, answer in zip(questions, answers):
            if known.get(name, {}).get(question) != answer:
                yield "%s, %s: %s; the document says %s" % (name, question, answer,
                                                            known.get(name, {}).get(question, "nothing"))


def main(arguments):
    mode, document = None, None
    if arguments[:1] in (["--update"], ["--check"]):
        mode, document, *arguments = arguments
    if len(arguments) < 2 or not all("=" in argument for argument in arguments[1:]):
        sys.exit(__doc__)
    probe = os.path.abspath(arguments[0])
    questions = subprocess.run([probe, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()
    columns = [column(probe, argument, questions) for argument in arguments[1:]]
    if mode is None:
        print(table(questions, columns), end="")
        return 0
    text = pathlib.Path(document).read_text(encoding="utf-8")
    if mode == "--check":
        differences = list(check(text, questions, columns))
        print("\n".join(differences))
        return 1 if differences else 0
    head, rest = text.split(MARKS[0])
    tail = rest.split(MARKS[1])[1]
    pathlib.Path(document).write_text(head + MARKS[0] + table(questions, columns) + MARKS[1] + tail, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
