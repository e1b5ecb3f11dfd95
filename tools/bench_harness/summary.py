"""From runs to medians, intervals, ratios and verdicts.

Intervals are percentile bootstraps (scipy.stats.bootstrap). Runs of one repeat
stand next to each other in time, so ratios resample repeats and not runs: what
a moment's noise does to both sides cancels.
"""
import warnings

import numpy
from scipy import stats

import counters

CONFIDENCE = 0.95
RESAMPLES = 2000
# Of fewer repeats no interval can hold with 95 % what it should.
MIN_REPEATS = 5
LEAST_EFFECT = 0.01
SAME = 0.02
# Metrics of a whole run, not of an operation.
WHOLE = ("time", "cpu")
_WORST = ("ok", "skipped", "failed", "timed_out", "crashed", "not_loaded")


def interval(samples, statistic, seed, paired=True):
    """{value, low, high} of statistic(*samples, axis=-1)."""
    value = float(statistic(*samples, axis=-1))
    if min(len(sample) for sample in samples) < 2:
        return {"value": value, "low": value, "high": value}
    with warnings.catch_warnings():
        # Samples that are all alike have an interval of no width, and that is right.
        warnings.simplefilter("ignore")
        found = stats.bootstrap(samples, statistic, n_resamples=RESAMPLES, paired=paired, vectorized=True,
                                confidence_level=CONFIDENCE, method="percentile",
                                random_state=seed).confidence_interval
    return {"value": value, "low": float(found.low), "high": float(found.high)}


def median_interval(values, seed):
    found = interval((numpy.asarray(values, float),), numpy.median, seed)
    return {"median": found["value"], "low": found["low"], "high": found["high"]}


def weights(groups, by_group):
    """What each program counts in a mean; `groups` has the group of each.

    By group, each group counts the same and so does each program in it: the
    mean is that of the groups' means. Else each program counts the same.
    """
    if not by_group:
        return [1 / len(groups)] * len(groups)
    return [1 / (len(set(groups)) * groups.count(group)) for group in groups]


def _mean_of_ratios(mine, other, shares):
    """The statistic on repeats: geometric mean over programs of the ratio of medians.

    `mine` and `other` have a row for each program and a column for each repeat,
    `shares` what each program counts.
    """
    mine, other = numpy.asarray(mine, float), numpy.asarray(other, float)

    def statistic(repeats, axis=-1):
        chosen = repeats.astype(int)
        ratios = numpy.median(mine[:, chosen], axis=axis) / numpy.median(other[:, chosen], axis=axis)
        return numpy.exp(numpy.average(numpy.log(ratios), axis=0, weights=shares))

    return statistic


def ratio_interval(mine, other, seed, shares=None):
    """Of medians, for one program (a list) or over several (a list of lists)."""
    mine, other = numpy.atleast_2d(mine), numpy.atleast_2d(other)
    return interval((numpy.arange(mine.shape[1]),), _mean_of_ratios(mine, other, shares), seed)


def verdict(ratio, repeats):
    """What a ratio of times says; below 1 is faster."""
    if repeats < MIN_REPEATS:
        return "can't tell"
    if ratio["low"] > 1 and ratio["value"] > 1 + LEAST_EFFECT:
        return "slower"
    if ratio["high"] < 1 and ratio["value"] < 1 - LEAST_EFFECT:
        return "faster"
    if ratio["low"] >= 1 - SAME and ratio["high"] <= 1 + SAME:
        return "same"
    return "can't tell"


def metric_of(program, runs):
    """Throughput if the program reports it in every run, unless the suite says otherwise."""
    if program.metric:
        return program.metric
    good = [run for run in runs if run["program"] == program.name and run["status"] == "ok"]
    return "throughput" if good and all(run["throughput"] for run in good) else "time"


def time_of(run, metric):
    """Seconds for an operation, or of the whole run: of the clock, or of the processors."""
    if metric == "cpu":
        return run["user_seconds"] + run["system_seconds"]
    return 1 / run["throughput"] if metric not in WHOLE and run["throughput"] else run["wall_seconds"]


def times_of(runs, program, peer, metric):
    """Of the good runs, in the order of repeats."""
    good = sorted((run for run in runs if run["program"] == program and run["peer"] == peer
                   and run["status"] == "ok"), key=lambda run: run["repeat"])
    return [time_of(run, metric) for run in good]


def _median(runs, key):
    values = [run[key] for run in runs if run[key] is not None]
    return float(numpy.median(values)) if len(values) == len(runs) and values else None


def _settled(runs):
    values = [run["result"].get("settled_rss_bytes") for run in runs if run["result"]]
    return float(numpy.median(values)) if values and None not in values else None


class _Table:
    """The runs by pair; only pairs without a failure have figures."""

    def __init__(self, programs, peers, runs):
        self.metrics = {program["name"]: program["metric"] for program in programs}
        self.groups = {program["name"]: program["group"] for program in programs}
        self.peers = peers
        self.runs = {(program, peer): [] for program in self.metrics for peer in peers}
        for run in runs:
            self.runs[run["program"], run["peer"]].append(run)
        self.failures = []
        self.status = {}
        for key, of_pair in self.runs.items():
            worst = max(of_pair, key=lambda run: _WORST.index(run["status"]), default=None)
            self.status[key] = worst["status"] if worst else "failed"
            if self.status[key] != "ok":
                self.failures.append({"program": key[0], "peer": key[1], "status": self.status[key],
                                      "detail": worst["detail"] if worst else "it was not run"})

    def times(self, program, peer):
        """None unless all went well."""
        if self.status[program, peer] != "ok":
            return None
        return times_of(self.runs[program, peer], program, peer, self.metrics[program])


def _pair(table, program, peer, baseline, seed):
    runs = table.runs[program, peer]
    good = [run for run in runs if run["status"] == "ok"]
    times, base = table.times(program, peer), table.times(program, baseline)
    line = {"program": program, "peer": peer, "runs": len(good), "status": table.status[program, peer],
            "time_per_operation": None, "ratio": None, "verdict": None, "wall_seconds": None,
            "peak_rss_bytes": None, "minor_faults": None, "system_share": None, "throughput": None,
            "settled_rss_bytes": None, "rss_ratio": None}
    if not times:
        return line
    line["time_per_operation"] = median_interval(times, seed)
    for key in ("wall_seconds", "peak_rss_bytes", "minor_faults", "throughput"):
        line[key] = _median(good, key)
    processor = [run["user_seconds"] + run["system_seconds"] for run in good]
    line["system_share"] = float(numpy.median([run["system_seconds"] / total if total else 0
                                               for run, total in zip(good, processor)]))
    line["settled_rss_bytes"] = _settled(good)
    line.update(counters.figures(good, table.metrics[program] in WHOLE))
    if base:
        line["rss_ratio"] = line["peak_rss_bytes"] / _median(table.runs[program, baseline], "peak_rss_bytes")
        if peer != baseline:
            line["ratio"] = ratio_interval(times, base, seed)
            line["verdict"] = verdict(line["ratio"], len(times))
        else:
            line["ratio"] = {"value": 1.0, "low": 1.0, "high": 1.0}
    return line


def _means(table, programs, memory, peers, by_group, seed):
    """The geometric means over `programs`: `memory` has their ratios, `peers` are (peer, baseline)."""
    timed = [program for program in programs if table.metrics[program] != "rss"]
    time, rss = None, None
    if timed:
        mine, base = ([table.times(program, peer) for program in timed] for peer in peers)
        time = ratio_interval(mine, base, seed, weights([table.groups[program] for program in timed], by_group))
    if programs:
        rss = float(numpy.exp(numpy.average(
            numpy.log([memory[program] for program in programs]),
            weights=weights([table.groups[program] for program in programs], by_group))))
    return {"programs": len(timed), "time_ratio": time, "rss_ratio": rss}


def _peer(table, pairs, peer, baseline, by_group, seed):
    """The means of a peer over the programs that ran on it and on the baseline, and those by group."""
    both = [program for program in table.metrics
            if table.times(program, peer) and table.times(program, baseline)]
    memory = {pair["program"]: pair["rss_ratio"] for pair in pairs if pair["peer"] == peer}
    groups = []
    for group in dict.fromkeys(table.groups.values()):
        members = [program for program in both if table.groups[program] == group]
        groups.append({"group": group, **_means(table, members, memory, (peer, baseline), False, seed)})
    return {"peer": peer, **_means(table, both, memory, (peer, baseline), by_group, seed), "groups": groups}


def group_counts(found):
    """{group: how many programs were timed} of a summary, without those in which none was."""
    counts = {}
    for peer in found["peers"]:
        for mean in peer.get("groups", ()):
            counts[mean["group"]] = max(counts.get(mean["group"], 0), mean["programs"])
    return {group: count for group, count in counts.items() if count}


def summarise(programs, peers, runs, baseline, seed, by_group=False):
    """`summary` of results.json; `programs` and `runs` as they stand there, `peers` by name.

    With `by_group` the means over all programs are means of the groups' means.
    """
    table = _Table(programs, peers, runs)
    pairs = [_pair(table, program["name"], peer, baseline, seed) for program in programs for peer in peers]
    return {"pairs": pairs,
            "peers": [_peer(table, pairs, peer, baseline, by_group, seed) for peer in peers],
            "failures": table.failures}
