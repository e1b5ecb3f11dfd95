#!/usr/bin/env python3
"""run_last_words.py LIBRARY PROGRAM: who ends waits for room, and nobody else (decision 0108).

Runs PROGRAM for each way to end, with a full pipe as standard error. The text must come whole, after the program has made
room because hakmem waited. No time passes meanwhile.
"""
import os
import re
import signal
import subprocess
import sys

# The options, the return code, and what is said.
WAYS = {
    "exit": ({"HAKMEM_STATS": "1"}, 0, r'\{"pid":.*\}\n'),
    "signal": ({"HAKMEM_STATS": "1", "HAKMEM_STATS_AT_SIGNALS": "1"}, -signal.SIGTERM, r'\{"pid":.*\}\n'),
    "crash": ({"HAKMEM_CRASH_REPORT": "1"}, -signal.SIGSEGV, r"hakmem: crash: SIGSEGV at 0x4: (?s:.*)process \d+\)\n"),
    "new": ({}, -signal.SIGABRT, r"hakmem: fatal: operator new of \d+ bytes failed, and no C\+\+ runtime .*\)\n"),
    "misuse": ({"HAKMEM_ON_MISUSE": "log"}, 0, ""),
}


def full_pipe():
    """Its two ends, neither of which is waited for."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"-" * 4096)
    except BlockingIOError:
        return reader, writer


def run(library, program, way, options):
    """The return code, what the program has said, and what hakmem has, behind what was there."""
    reader, writer = full_pipe()
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": library, "HAKMEM_GUARD_SAMPLE": "0", **options}
    done = subprocess.run([program, way], env=environment, stdin=reader, stdout=subprocess.PIPE, stderr=writer, check=False)
    os.close(writer)
    with open(reader, encoding="utf-8", errors="replace") as said:
        return done.returncode, done.stdout.decode(), said.read().lstrip("-")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    library, program = (os.path.realpath(path) for path in sys.argv[1:])
    wrong = []
    for way, (options, expected, text) in WAYS.items():
        code, told, said = run(library, program, way, options)
        if told == "no filters\n":
            break
        if code != expected or not re.fullmatch(text, said) or (told != "") != (text != ""):
            wrong.append(f"{way}: ended with {code}, said {told!r}, and hakmem {said!r}")
    print("\n".join(wrong or ["all last words came whole"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
