"""What the processor counts, where there is such a thing and we may read it.

One more run of each program is counted, apart from those that are timed: each
thread and process that a program makes takes longer while it is.
"""
import json
import subprocess

# By the name in results.json, TYPE:CONFIG of perf_event_open(2). No more than
# the usual processor counts at once, four beside cycles and instructions.
EVENTS = {
    "cycles": "0:0", "instructions": "0:1", "branches": "0:4", "branch_misses": "0:5",
    "l1_misses": "3:65536",  # reads that missed the first-level data cache
    "cache_misses": "0:3",  # of the last level
}


def options():
    """What makes tools/measure count."""
    return ["--count=%s:%s" % item for item in EVENTS.items()]


def are_here(measure, scratch):
    """Whether any can be counted on this machine, by us."""
    path = scratch / "counters.json"
    subprocess.run([measure, path, *options(), "--", "true"], check=True)
    return bool(json.loads(path.read_text())["counters"])


def figures(runs, whole):
    """A pair's figures, of its runs: counts are for an operation, or of the `whole` run; {} if none was counted."""
    counted = next((run["counters"] for run in runs if run.get("counters")), None)
    if not counted:
        return {}
    found = {}
    operations = 1 if whole else counted.get("operations", 1)
    for key in ("instructions", "l1_misses", "cache_misses", "tlb_misses"):
        if key in counted:
            found[key] = counted[key] / operations
    for key, over, under in (("instructions_per_cycle", "instructions", "cycles"),
                             ("branch_miss_share", "branch_misses", "branches")):
        if over in counted and counted.get(under):
            found[key] = counted[over] / counted[under]
    return found
