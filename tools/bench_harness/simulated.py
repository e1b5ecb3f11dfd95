"""Counts of a simulated processor, by valgrind's cachegrind, for machines without counters.

They do not depend on the machine's load, and repeat but for addresses. cachegrind knows no TLB:
a cache whose lines are pages is one.
"""
import shutil

_TLB_ENTRIES = 64
_PAGE_BYTES = 4096
_TLB = "%d,%d,%d" % (_TLB_ENTRIES * _PAGE_BYTES, _TLB_ENTRIES, _PAGE_BYTES)
# Of each pass: what cachegrind is told, and the sums of its events by the name in results.json.
PASSES = (
    (("--branch-sim=yes",),
     {"instructions": ("Ir",), "branches": ("Bc", "Bi"), "branch_misses": ("Bcm", "Bim"),
      "l1_misses": ("D1mr",), "cache_misses": ("ILmr", "DLmr", "DLmw")}),
    (("--D1=" + _TLB,), {"tlb_misses": ("D1mr",)}),
)


def missing():
    """Why nothing can be counted here, or None."""
    return None if shutil.which("valgrind") else "there is no valgrind here"


def command(folder, options):
    """The words before a program's own; counts of each process go to `folder`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return ("valgrind", "--tool=cachegrind", "-q", "--trace-children=yes", "--cache-sim=yes",
            "--cachegrind-out-file=%s/%%p" % folder, *options)


def _events(text):
    """{event: count} of one file."""
    lines = dict(line.split(": ", 1) for line in text.splitlines() if line.startswith(("events: ", "summary: ")))
    return dict(zip(lines["events"].split(), map(int, lines["summary"].split())))


def read(folder, names):
    """{name: count}, of all processes that came to their end."""
    found = [_events(path.read_text()) for path in folder.iterdir() if "\nsummary: " in path.read_text()]
    return {name: sum(events.get(key, 0) for events in found for key in keys) for name, keys in names.items()}


def merged(before, counts, operations):
    """`counts` of a run with so many operations, in relation to those of the passes before."""
    if not before:
        return {**counts, **({"operations": operations} if operations else {})}
    part = before["operations"] / operations if operations else 1
    return {**before, **{name: round(count * part) for name, count in counts.items()}}
