"""The programs that are measured: benchmarks/suite/*.toml.

docs/benchmarks.md explains the keys; this module refuses what it does not know,
so that a misspelt key does not go unnoticed.
"""
import dataclasses
import re
import tomllib

from errors import BadUsage

# In the order of tables, with the titles of the longer ones.
GROUPS = {
    "small": "Small blocks, one thread", "mixed": "Mixed sizes and functions, one thread",
    "large": "Large blocks, one thread", "threads": "Several threads", "synthetic": "Patterns",
    "micro": "One path each, by size", "traces": "Recorded traces", "brief": "Programs of 20 to 100 ms",
    "programs": "Whole programs",
}
PLACEHOLDERS = ("bench", "micro", "replay", "traces", "programs", "work", "cpus")
# What `figure` finds: operations a second, or seconds for the same work each time.
FIGURES = ("rate", "seconds")
METRICS = ("throughput", "time", "cpu", "rss")
PRELOADS = ("self", "script")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_NAME = re.compile(r"[a-z0-9_]+")


@dataclasses.dataclass(frozen=True)
class Program:
    """A row of the suite."""
    name: str
    title: str
    about: str
    group: str
    command: tuple
    quick: tuple = ()
    threads: int | None = None
    family: str | None = None
    prepare: tuple = ()
    preload: str = "self"
    metric: str | None = None  # None: throughput if it prints one, else time
    figure: str | None = None  # None: it prints a line of results
    requires: tuple = ()
    timeout_seconds: float = 60


_TYPES = {
    "name": str, "title": str, "about": str, "group": str, "command": list, "quick": list, "threads": int,
    "family": str, "prepare": list, "preload": str, "metric": str, "figure": str, "requires": list,
    "timeout_seconds": (int, float),
}
_NEEDED = ("name", "title", "about", "group", "command")


def _check_words(where, key, words, placeholders):
    if not words or not all(isinstance(word, str) for word in words):
        raise BadUsage("%s: %s must be a list of strings, not empty" % (where, key))
    for word in words:
        for name in _PLACEHOLDER.findall(word):
            if name not in placeholders:
                raise BadUsage("%s: %s has {%s}; there are %s" % (
                    where, key, name, ", ".join("{%s}" % known for known in placeholders)))


def _check_figure(where, pattern):
    try:
        names = list(re.compile(pattern).groupindex)
    except re.error as error:
        raise BadUsage("%s: figure is no regular expression: %s" % (where, error)) from error
    if len(names) != 1 or names[0] not in FIGURES:
        raise BadUsage("%s: figure needs one named group: %s" % (where, " or ".join(FIGURES)))


def _program(where, row, placeholders):
    for key in _NEEDED:
        if key not in row:
            raise BadUsage("%s: a program without %s" % (where, key))
    where = "%s: program %s" % (where, row["name"])
    for key, value in row.items():
        if key not in _TYPES:
            raise BadUsage("%s: unknown key %s" % (where, key))
        if not isinstance(value, _TYPES[key]) or isinstance(value, bool):
            raise BadUsage("%s: %s has the wrong type" % (where, key))
        if isinstance(value, list):
            _check_words(where, key, value, placeholders)
    if not _NAME.fullmatch(row["name"]):
        raise BadUsage("%s: a name is made of a-z, 0-9 and _" % where)
    for key, known in (("group", tuple(GROUPS)), ("metric", METRICS), ("preload", PRELOADS)):
        if row.get(key, known[0]) not in known:
            raise BadUsage("%s: %s is one of %s" % (where, key, ", ".join(known)))
    if "figure" in row:
        _check_figure(where, row["figure"])
    for key in ("threads", "timeout_seconds"):
        if row.get(key, 1) <= 0:
            raise BadUsage("%s: %s must be above 0" % (where, key))
    return Program(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})


def load(folder, placeholders=PLACEHOLDERS):
    """All programs, in the order of groups, of the files and of what stands in them."""
    programs = {}
    for path in sorted(folder.glob("*.toml")):
        try:
            content = tomllib.loads(path.read_text())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadUsage("%s: %s" % (path, error)) from error
        for key in content:
            if key != "program":
                raise BadUsage("%s: unknown key %s; programs are [[program]]" % (path, key))
        for row in content.get("program", []):
            program = _program(path, row, placeholders)
            if program.name in programs:
                raise BadUsage("%s: there is another program %s" % (path, program.name))
            programs[program.name] = program
    if not programs:
        raise BadUsage("there are no programs in %s" % folder)
    order = list(GROUPS)
    return sorted(programs.values(), key=lambda program: order.index(program.group))


def select(programs, texts, quick):
    """Those whose name or title contains one of `texts`; with `quick` the short ones."""
    available = [program for program in programs if program.quick or not quick]
    if quick:
        available = [dataclasses.replace(program, command=program.quick) for program in available]
    if not texts:
        if not available:
            raise BadUsage("no program of the suite is part of --quick")
        return available
    for text in texts:
        if not any(_matches(program, text) for program in available):
            raise BadUsage("no program%s is called %s; there are %s" % (
                " of --quick" if quick else "", text,
                ", ".join(program.name for program in available)))
    return [program for program in available if any(_matches(program, text) for text in texts)]


def _matches(program, text):
    return text.lower() in program.name or text.lower() in program.title.lower()


def fill(words, values):
    """The command with its placeholders replaced."""
    return [_PLACEHOLDER.sub(lambda match: str(values[match[1]]), word) for word in words]
