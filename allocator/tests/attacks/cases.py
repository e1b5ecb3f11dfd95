"""The attack programs' cases, how they are run, and what is said of their outcomes.

A case is a line "// attack NAME: WHAT" of a program's source. One run of it ends in one of WORDS, or
says how many of its tries have succeeded. Many runs are summed up in one word, or in "N %".
"""
import collections
import dataclasses
import os
import re
import signal
import subprocess

WORDS = {
    "succeeds": "the attack did what it was to do, and the program went on",
    "prevented": "it did not, and nothing was noticed",
    "detected": "the allocator ended the process",
    "faults": "the memory refused the attacker's access",
    "crashes": "the allocator, or the program on memory it was given, ran into a fault",
    "hangs": "the process did not end",
}
# A word stands for all runs when so many of a hundred end in it.
NEARLY_ALL = 90

ATTACK = re.compile(r"^// attack (\w+): (.+)$", re.MULTILINE)
EXPECT = re.compile(r"^// expect(?:\[([\w ]+)\])? (\w+): (.+)$", re.MULTILINE)
TRIES = re.compile(r"attack: succeeded in (\d+) of (\d+) tries$")
RANGE = re.compile(r"(\d+)\.\.(\d+) %$")
DETECTED = (signal.SIGABRT, signal.SIGILL, signal.SIGTRAP)


@dataclasses.dataclass(frozen=True)
class Case:
    program: str  # its path
    name: str
    what: str
    about: str  # the first sentence of the source
    expected: dict  # variant, or None for the others -> a word or a range

    @property
    def label(self):
        return "%s %s" % (os.path.basename(self.program), self.name)

    def expectation(self, variant):
        return self.expected.get(variant, self.expected.get(None))


def read(program):
    """The cases of the program, from the source beside it."""
    with open(program + ".cc", encoding="utf-8") as source:
        text = source.read()
    expected = collections.defaultdict(dict)
    for variants, name, outcome in EXPECT.findall(text):
        for variant in variants.split() or [None]:
            expected[name][variant] = outcome
    about = re.match(r"// (.+?\.)(?:\s|$)", text, re.DOTALL)[1].replace("\n// ", " ")
    cases = [Case(program, name, what, about, expected.pop(name, {})) for name, what in ATTACK.findall(text)]
    if not cases or expected:
        raise SystemExit("%s.cc: no case, or an expectation without one: %s" % (program, list(expected)))
    return cases


def run_once(case, library, patience_seconds=None):
    """A word, or how many of how many tries have succeeded; with a patience, "hangs" is one, too."""
    environment = dict(os.environ)
    environment.pop("LD_PRELOAD", None)
    if library:
        environment["LD_PRELOAD"] = library
    try:
        done = subprocess.run([os.path.abspath(case.program), case.name], env=environment, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False,
                              timeout=patience_seconds)  # waits: only for other allocators, in compare.py
    except subprocess.TimeoutExpired:
        return "hangs"
    if -done.returncode in DETECTED:
        return "detected"
    # What goes wrong before main, as a library that cannot be loaded, is no outcome.
    last = (done.stdout.splitlines() or [""])[-1]
    tries = TRIES.match(last)
    if tries:
        return int(tries[1]), int(tries[2])
    for line, word in (("attack: succeeded", "succeeds"), ("attack: failed", "prevented"),
                       ("attack: stopped by a fault", "faults"), ("attack: crashed", "crashes")):
        if last.startswith(line):
            return word
    if done.returncode in (-signal.SIGSEGV, -signal.SIGBUS):
        return "crashes"
    raise SystemExit("%s ended with %d and no outcome, on %s: %s" % (
        case.label, done.returncode, library, done.stderr.strip()))


def share_of(outcomes):
    """How many of a hundred runs or tries have succeeded."""
    counts = [each if isinstance(each, tuple) else (int(each == "succeeds"), 1) for each in outcomes]
    return 100 * sum(good for good, _ in counts) / sum(tries for _, tries in counts)


def sum_up(outcomes):
    """The cell of a table."""
    share = share_of(outcomes)
    if share >= NEARLY_ALL:
        return "succeeds"
    words = collections.Counter(each for each in outcomes if isinstance(each, str))
    word, count = words.most_common(1)[0] if words else (None, 0)
    if 100 * count >= NEARLY_ALL * len(outcomes):
        return word
    if share == 0:
        return word or "prevented"
    return "%.*f %%" % (share < 1, share)


def meets(cell, share, expectation):
    """Whether a cell, or the share behind it, is what was expected."""
    bounds = RANGE.match(expectation)
    if bounds:
        return int(bounds[1]) <= share <= int(bounds[2])
    return cell == expectation
