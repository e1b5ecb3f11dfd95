"""tools/bench compare: what changed beyond noise from one results.json to another.

Two files are from two moments, and a machine has moods. So times are first
divided by those of the baseline, if that is the same library in both files.
"""
import dataclasses

import numpy
from rich.table import Table

import summary
import terminal
from errors import BadUsage

# Below this, peak memory differs by what the loader and the kernel do.
_LEAST_BYTES = 1 << 20


@dataclasses.dataclass
class Change:
    """Of one program; ratios are after ÷ before."""
    program: str
    time: dict | None
    memory: dict | None
    verdict: str
    regressions: list


def _identity(results, name):
    for peer in results["peers"]:
        if peer["name"] == name:
            return peer["sha256"] or peer["version"]
    return None


def common_reference(before, after, peer):
    """The baseline, if it is the same allocator in both and not the one in question."""
    name = before["settings"]["baseline"]
    if name == after["settings"]["baseline"] and name != peer and _identity(before, name) is not None \
            and _identity(before, name) == _identity(after, name):
        return name
    return None


def _check(results, path, peer):
    names = [each["name"] for each in results["peers"]]
    if peer not in names:
        raise BadUsage("%s has no figures of %s; it has %s" % (path, peer, ", ".join(names)))


def _columns(results, program, peer, metric):
    """The time of each good run, or its memory, by repeat; empty if the pair has a failure."""
    status = {(pair["program"], pair["peer"]): pair["status"] for pair in results["summary"]["pairs"]}
    if status.get((program, peer)) != "ok":
        return []
    if metric != "memory":
        return summary.times_of(results["runs"], program, peer, metric)
    runs = [run for run in results["runs"] if run["program"] == program and run["peer"] == peer
            and run["status"] == "ok"]
    return [run["peak_rss_bytes"] for run in runs]


def _ratio(samples, seed):
    """Of medians, after ÷ before; each sample is (values, reference values or None)."""

    def level(sample, repeats, axis):
        values, reference = (numpy.asarray(part, float) if part else None for part in sample)
        chosen = repeats.astype(int)
        found = numpy.median(values[chosen], axis=axis)
        return found if reference is None else found / numpy.median(reference[chosen], axis=axis)

    def statistic(before, after, axis=-1):
        return level(samples[1], after, axis) / level(samples[0], before, axis)

    repeats = tuple(numpy.arange(len(values)) for values, _ in samples)
    return summary.interval(repeats, statistic, seed, paired=False)


def _change(before, after, programs, peer, reference, bound, seed):
    """The change of one program, given as its entry in both files."""
    name = programs[0]["name"]
    sides = (before, after)
    # One that fails everywhere has lost its throughput, and with it its metric.
    metric = programs[0]["metric"] if programs[0]["metric"] == programs[1]["metric"] else "time"
    times = [_columns(results, name, peer, metric) for results in sides]
    if not times[0]:
        return Change(name, None, None, "no figures before", [])
    if not times[1]:
        return Change(name, None, None, "failed", ["%s ran before and does not now" % name])
    references = [reference and _columns(results, name, reference, metric) for results in sides]
    if not all(references) or any(len(r) != len(t) for r, t in zip(references, times)):
        references = [None, None]
    time = _ratio(list(zip(times, references)), seed)
    sizes = [_columns(results, name, peer, "memory") for results in sides]
    memory = _ratio([(size, None) for size in sizes], seed)
    verdict = summary.verdict(time, min(map(len, times)))
    regressions = []
    if metric != "rss" and verdict == "slower" and time["value"] > 1 + bound:
        regressions.append("%s takes %.1f %% longer" % (name, 100 * (time["value"] - 1)))
    grown = float(numpy.median(sizes[1]) - numpy.median(sizes[0]))
    if memory["low"] > 1 and memory["value"] > 1 + bound and grown > _LEAST_BYTES:
        regressions.append("%s takes %.1f %% more memory" % (name, 100 * (memory["value"] - 1)))
    return Change(name, time, memory, verdict, regressions)


def compare(before, after, peer, bound, absolute=False):
    """(changes, remarks); `bound` as a fraction."""
    _check(before, "the first file", peer)
    _check(after, "the second file", peer)
    old = {program["name"]: program for program in before["programs"]}
    new = {program["name"]: program for program in after["programs"]}
    common = [name for name in new if name in old and old[name]["command"] == new[name]["command"]]
    if not common:
        raise BadUsage("the two files have no program in common that ran with the same arguments")
    remarks = []
    if any(before["machine"][key] != after["machine"][key] for key in ("cpu", "processors", "memory_bytes")):
        remarks.append("Warning: the files are from different machines (%s; %s)" % (
            before["machine"]["cpu"], after["machine"]["cpu"]))
    for results, which in ((before, "first"), (after, "second")):
        if results["machine"]["noisy"]:
            remarks.append("Warning: the machine was noisy during the %s measurement" % which)
    only = sorted(set(old) ^ set(new) | (set(old) & set(new)) - set(common))
    if only:
        remarks.append("In one file only, or with other arguments: %s" % ", ".join(only))
    reference = None if absolute else common_reference(before, after, peer)
    remarks.append("Times are in relation to %s's in the same file" % reference if reference
                   else "Times are compared as they are, without a common reference")
    seed = after["settings"]["seed"]
    return [_change(before, after, (old[name], new[name]), peer, reference, bound, seed)
            for name in common], remarks


def show(changes, remarks, peer, bound, out):
    """Prints the table and what it comes to; returns the exit status."""
    table = Table(title="%s, after ÷ before" % peer, title_justify="left", title_style="bold", box=None,
                  pad_edge=False)
    for title in ("program", "time", "verdict", "memory"):
        table.add_column(title, no_wrap=True)
    for change in changes:
        table.add_row(change.program, terminal.ratio_text(change.time),
                      terminal.verdict_text(change.verdict),
                      terminal.ratio_text(change.memory))
    out.print(table)
    for remark in remarks:
        out.print(remark + ".", markup=False)
    regressions = [sentence for change in changes for sentence in change.regressions]
    for sentence in regressions:
        out.print("Regression: %s." % sentence, style="red", markup=False)
    if not regressions:
        out.print("No regression above %g %%." % (100 * bound), style="green")
    return 1 if regressions else 0
