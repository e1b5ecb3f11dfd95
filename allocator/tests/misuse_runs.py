"""What the runners of misuse programs share: runs, what they print, the cases of a shard at once."""
import concurrent.futures
import os
import re
import subprocess
import sys

import shards

ADDRESS = re.compile(r"0x[0-9a-f]+")
STATES = re.compile(r"^// expect\b.*: .", re.MULTILINE)
# What an emulator says of a program's end.
EMULATOR = re.compile(r"^qemu: .*\n", re.MULTILINE)


def run(library, program, argument, **options):
    """Returns the program's return code and its stderr."""
    result = subprocess.run(
        [program, argument],
        env={**os.environ, "LD_PRELOAD": library, "HAKMEM_WARN_WEAKENED": "0", "HAKMEM_GUARD_SAMPLE": "0", **options},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    return result.returncode, EMULATOR.sub("", result.stderr)


def wrong_sentence(text, kind, sentence):
    """What is wrong with the first line of a report, as a list."""
    expected = f"hakmem: {kind}: {sentence}"
    first, _, rest = text.partition("\n")
    found = ADDRESS.sub("0xP", first)
    # A report of one line has the process at its end, others have a last line for it.
    if not rest:
        found, count = re.subn(r" \([\w.]+, process \d+\)$", "", found)
        if count == 0:
            return [f"no process in: {first}"]
    return [] if found == expected else [f"expected: {expected}\n  found:    {found}"]


def run_logged(library, program, argument, **options):
    """Goes on after its misuse. Returns its stderr, and what is wrong with its end, as a list."""
    code, text = run(library, program, argument, HAKMEM_ON_MISUSE="log", HAKMEM_STATS="1", **options)
    wrong = [f"with log it ended with {code}"] if code != 0 else []
    counted = re.findall(r'"misuses":(\d+)', text)
    if counted != ["1"]:
        wrong.append(f"with log, misuses counted: {counted}")
    return text, wrong


def main(usage, expectations, complaints):
    """Runs the cases of all programs that the command line names.

    `expectations(variant, text)` are the cases that a program's source states, and
    `complaints(variant, library, program, text, *case)` what is wrong with one.
    """
    if len(sys.argv) < 4:
        sys.exit(usage)
    variant, library = sys.argv[1], os.path.realpath(sys.argv[2])
    cases = []
    for program in sys.argv[3:]:
        with open(program + ".cc", encoding="utf-8") as source:
            text = source.read()
        if not STATES.search(text):
            sys.exit(f"{program}.cc says nothing about what to expect")
        cases += [(os.path.abspath(program), text, *case) for case in expectations(variant, text)]
    cases = shards.share(cases)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = list(pool.map(lambda case: complaints(variant, library, *case), cases))
    for (program, _, argument, *_), lines in zip(cases, wrong):
        if lines:
            print(f"{os.path.basename(program)} {argument}: " + "\n  ".join(lines))
    bad = sum(1 for lines in wrong if lines)
    print(f"{len(cases)} misuses, {len(cases) - bad} reported as expected")
    sys.exit(1 if bad else 0)
