"""What the page and the Markdown tables say about one results.json, as plain data.

View(results) orders the allocators, picks the subject (hakmem's release build; without one, the
baseline), compares any two allocators and finds the losses. results.schema.json documents the
results.
"""
import collections
import math
import operator

import suite
import summary
from report_words import compared, range_text, ratio_text

# How bad a status is; the first is the best.
STATUSES = ("ok", "skipped", "failed", "timed_out", "crashed", "not_loaded")
GROUPS = tuple(suite.GROUPS.items())

# How the subject stands against its best rival on a program.
Standing = collections.namedtuple("Standing", "program rival ratio verdict")
Interval = collections.namedtuple("Interval", "value low high")
# problem: a status and its detail, shared by all of `peers` on `program`.
Problem = collections.namedtuple("Problem", "program status detail peers")


def usable(value):
    """Whether a figure can be put on a logarithmic axis."""
    return value is not None and math.isfinite(value) and value > 0


def interval(ratio):
    """The Interval of {"value", "low", "high"}, or None."""
    if not ratio or not usable(ratio.get("value")):
        return None
    value = ratio["value"]
    low, high = ratio.get("low"), ratio.get("high")
    return Interval(value, low if usable(low) else value, high if usable(high) else value)


def divide(over, under):
    """The ratio of two independent estimates; the interval by the MOVER rule on logarithms."""
    value = over.value / under.value
    down = math.hypot(math.log(over.value / over.low), math.log(under.high / under.value))
    up = math.hypot(math.log(over.high / over.value), math.log(under.value / under.low))
    return Interval(value, value * math.exp(-down), value * math.exp(up))


def geometric_mean(intervals, shares):
    """Of independent Intervals, of which each counts its share; None of nothing."""
    if not intervals:
        return None
    value = math.exp(sum(share * math.log(i.value) for i, share in zip(intervals, shares)))
    down = math.hypot(*(share * math.log(i.value / i.low) for i, share in zip(intervals, shares)))
    up = math.hypot(*(share * math.log(i.high / i.value) for i, share in zip(intervals, shares)))
    return Interval(value, value * math.exp(-down), value * math.exp(up))


class View:
    def __init__(self, results):
        self.results = results
        self.settings = results["settings"]
        self.baseline = self.settings["baseline"]
        self.subject = self._pick_subject(results["peers"])
        # The subject and hakmem's builds first; otherwise in the order they were given.
        self.peers = sorted(results["peers"], key=lambda peer: (
            peer["name"] != self.subject, not peer["hakmem"]))
        self.names = [peer["name"] for peer in self.peers]
        self.programs = results["programs"]
        self.timed = [p for p in self.programs if p["metric"] != "rss"]
        self._pairs = {(p["program"], p["peer"]): p for p in results["summary"]["pairs"]}
        self.means = {p["peer"]: p for p in results["summary"]["peers"]}
        self.by_group = self.settings.get("mean") == "groups"
        self.groups = self._groups_with_means()
        self.rivals = self._pick_rivals()
        self.best_rival = min((n for n in self.rivals if self.time_mean(n)), default=None,
                              key=lambda name: self.time_mean(name).value)

    def _pick_subject(self, peers):
        names = [peer["name"] for peer in peers]
        ours = [peer["name"] for peer in peers if peer["hakmem"]]
        if "hakmem" in ours:
            return "hakmem"
        others = [name for name in ours if name != self.baseline]
        return next(name for name in others + ours + [self.baseline] + names if name in names)

    def _groups_with_means(self):
        """(name, title, programs that were timed) of the groups, if there are several to tell apart."""
        counts = summary.group_counts(self.results["summary"])
        return [(name, title, counts[name]) for name, title in GROUPS if name in counts] if len(counts) > 1 else []

    def shares(self, programs):
        """What each counts in a mean over them."""
        return summary.weights([program["group"] for program in programs], self.by_group) if programs else []

    def group_mean(self, peer, group):
        """(time: an Interval or None, memory: a number or None) of a peer over a group's programs."""
        for mean in self.means.get(peer, {}).get("groups", ()):
            if mean["group"] == group:
                return interval(mean["time_ratio"]), mean["rss_ratio"] if usable(mean["rss_ratio"]) else None
        return None, None

    def _pick_rivals(self):
        """Those the subject is measured by: other allocators, or its own builds if alone."""
        foreign = [p["name"] for p in self.peers if not p["hakmem"] and p["name"] != self.subject]
        return foreign or [name for name in self.names if name != self.subject]

    def pair(self, program, peer):
        """The summary of one allocator on one program, or None."""
        return self._pairs.get((program, peer))

    def measured(self, program, peer):
        """As pair(), but None unless every run went well."""
        pair = self.pair(program, peer)
        return pair if pair and pair["status"] == "ok" else None

    def figure(self, program, peer, key):
        pair = self.measured(program, peer)
        return pair.get(key) if pair else None

    def time(self, program, peer):
        time = self.figure(program, peer, "time_per_operation")
        return interval(time and {"value": time["median"], "low": time["low"],
                                  "high": time["high"]})

    def versus(self, program, over, under):
        """The time of `over` by that of `under` on one program: an Interval, or None.

        The harness compares with the baseline, repeat by repeat; here the noise of two others
        counts as independent, so that their interval is rather too wide."""
        if over == under:
            return None
        if under == self.baseline and interval(self.figure(program, over, "ratio")):
            return interval(self.figure(program, over, "ratio"))
        if over == self.baseline and interval(self.figure(program, under, "ratio")):
            ratio = interval(self.figure(program, under, "ratio"))
            return Interval(1 / ratio.value, 1 / ratio.high, 1 / ratio.low)
        times = self.time(program, over), self.time(program, under)
        return divide(*times) if all(times) else None

    def verdict(self, program, over, under):
        """The harness's word for versus(): faster, slower, same or can't tell."""
        ratio = self.versus(program, over, under)
        repeats = min(self.pair(program, name)["runs"] for name in (over, under))
        return summary.verdict(ratio._asdict(), repeats)

    def spread(self, program, name):
        """Half the interval of the time, and a mark if it is not the baseline's."""
        time = self.time(program, name)
        percent = 50 * (time.high - time.low) / time.value
        mark = {"faster": "▾", "slower": "▴"}.get(self.figure(program, name, "verdict"), "")
        return ("±%.0f%% %s" % (percent, mark) if percent >= 0.5 else mark).strip()

    def time_mean(self, peer):
        """The geometric mean of time against the baseline: an Interval, or None."""
        return interval(self.means.get(peer, {}).get("time_ratio"))

    def memory_mean(self, peer):
        value = self.means.get(peer, {}).get("rss_ratio")
        return value if usable(value) else None

    def overall(self, over, under):
        """(geometric mean over the timed programs that both ran, their number)."""
        ratios = [(p, self.versus(p["name"], over, under)) for p in self.timed]
        ratios = [(p, ratio) for p, ratio in ratios if ratio]
        if under == self.baseline and self.time_mean(over):
            return self.time_mean(over), self.means[over]["programs"]
        return geometric_mean([ratio for _, ratio in ratios], self.shares([p for p, _ in ratios])), len(ratios)

    def memory_versus(self, over, under):
        """As overall(), for peak memory over all programs; a number or None."""
        if under == self.baseline and self.memory_mean(over):
            return self.memory_mean(over)
        both, logarithms = [], []
        for program in self.programs:
            ours, theirs = (self.figure(program["name"], peer, "peak_rss_bytes")
                            for peer in (over, under))
            if usable(ours) and usable(theirs):
                both.append(program)
                logarithms.append(math.log(ours / theirs))
        return math.exp(sum(map(operator.mul, logarithms, self.shares(both)))) if both else None

    def against_best(self, program):
        """(the fastest rival on `program`, the subject's time by its time), or None."""
        times = [(self.time(program, name), name) for name in self.rivals]
        times = [(time.value, name) for time, name in times if time]
        if not times or not self.time(program, self.subject):
            return None
        best = min(times)[1]
        return best, self.versus(program, self.subject, best)

    def standings(self):
        """The Standing on each timed program, the worst loss first."""
        found = []
        for program in self.timed:
            best = self.against_best(program["name"])
            if best:
                verdict = self.verdict(program["name"], self.subject, best[0])
                found.append(Standing(program, *best, verdict))
        return sorted(found, key=lambda standing: -standing.ratio.value)

    def title(self, program):
        for known in self.programs:
            if known["name"] == program:
                return known["title"]
        return program

    def problems(self):
        """Every pair that did not go well, the worst first; equal ones of a program together."""
        entries = {}
        for failure in self.results["summary"]["failures"]:
            entries[failure["program"], failure["peer"]] = failure["status"], failure["detail"]
        listed = set(entries)
        for entry in self.results["runs"] + self.results["summary"]["pairs"]:
            key = entry["program"], entry["peer"]
            if entry["status"] == "ok" or key in listed:
                continue
            if key not in entries or rank(entry["status"]) > rank(entries[key][0]):
                entries[key] = entry["status"], entry.get("detail")
        grouped = {}
        for (program, peer), (status, detail) in entries.items():
            grouped.setdefault((program, status, detail or ""), []).append(peer)
        problems = [Problem(*key, tuple(peers)) for key, peers in grouped.items()]
        return sorted(problems, key=lambda p: (-rank(p.status), p.program, p.peers[0] or ""))

    def failures(self):
        return [p for p in self.problems() if p.status != "skipped"]

    def skipped(self):
        return [p for p in self.problems() if p.status == "skipped"]

    def failures_of(self, peer):
        return sum(1 for p in self.failures() if peer in p.peers)

    def who(self, problem):
        peers = [peer for peer in problem.peers if peer]
        if len(peers) == len(self.names) and len(peers) > 1 or not peers:
            return "every allocator"
        return ", ".join(peers)


def rank(status):
    return STATUSES.index(status) if status in STATUSES else len(STATUSES)


def best_names(figures):
    """Names of the lowest figure in {name: figure or None}; none where all are alike."""
    known = {name: figure for name, figure in figures.items() if figure is not None}
    if len(known) > 1 and len(set(known.values())) == 1:
        return set()
    lowest = min(known.values(), default=None)
    return {name for name, figure in known.items() if figure == lowest}


def headline(shown, order):
    """The first sentence; `order` has the fastest first."""
    means = [(name, shown.time_mean(name)) for name in order if shown.time_mean(name)]
    if not means:
        return "No allocator could be compared."
    fastest, mean = means[0]
    if len(means) == 1:
        return "Only %s was measured." % fastest
    beaten = shown.best_rival if fastest == shown.subject else shown.subject
    if not beaten or not shown.time_mean(beaten):
        beaten = means[1][0]
    mean = shown.overall(fastest, beaten)[0] or mean
    if shown.settings["repeats"] < summary.MIN_REPEATS:
        return "%s leads %d allocators, in too few runs for an interval: %s (%s)." % (
            fastest, len(means), compared(mean.value, "time", beaten), ratio_text(mean.value))
    words = "%s leads %d allocators, though not beyond the noise: %s (%s, %d%% interval %s)." \
        if mean.low < 1 < mean.high else \
        "%s is the fastest of %d allocators: %s (%s, %d%% interval %s)."
    return words % (fastest, len(means), compared(mean.value, "time", beaten),
                    ratio_text(mean.value), round(100 * shown.settings["confidence"]),
                    range_text(mean))
