"""What tools/bench shows in the terminal."""
import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

import report_words
import summary

COLOURS = {"faster": "green", "slower": "red", "failed": "red", "same": "cyan", "can't tell": "yellow"}
_PIPE_WIDTH = 140
_LINE_EVERY_SECONDS = 15


def console(stream=None, stderr=False):
    """A console; what is not a terminal gets a width that tables fit in."""
    found = Console(file=stream, stderr=stderr, highlight=False)
    return found if found.is_terminal else Console(file=stream, stderr=stderr, highlight=False,
                                                   width=_PIPE_WIDTH)


def duration(seconds):
    """For people, in the unit that fits."""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns")):
        if seconds * factor >= 1:
            break
    return "%.3g %s" % (seconds * factor, unit)


def amount(number):
    """Bytes, for people."""
    if number is None:
        return ""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return "%.0f %s" % (number, unit) if number >= 100 or unit == "B" else "%.1f %s" % (number, unit)


def rate(number):
    if number is None:
        return ""
    for factor, unit in ((1e6, "M/s"), (1e3, "k/s"), (1, "/s")):
        if number >= factor:
            break
    return "%.3g %s" % (number / factor, unit)


def left(seconds):
    if seconds >= 90:
        return "about %d min left" % round(seconds / 60)
    return "about %d s left" % round(seconds)


class RunProgress:
    """Session's progress: a bar in a terminal, else a line now and then."""

    def __init__(self, out, total):
        self._out = out
        self._total = total
        self._done = 0
        self._phase = ""
        self._said = time.monotonic()
        self._bar = None
        if out.is_terminal:
            # Drawn between runs only: a run has the machine for itself.
            self._bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                                 TextColumn("{task.fields[left]}"), TextColumn("{task.fields[now]}"),
                                 console=out, auto_refresh=False, transient=True)
            self._task = self._bar.add_task("", total=total, left="", now="")

    def __enter__(self):
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, *_):
        if self._bar:
            self._bar.stop()

    def phase(self, text):
        self._phase = text
        if self._bar:
            self._bar.update(self._task, description=text, refresh=True)

    def done(self, pair, outcome):
        self._done += 1
        name = "%s on %s" % (pair.program.name, pair.peer.name)
        if outcome.status != "ok":
            self._out.print("%s: %s: %s" % (name, outcome.status.replace("_", " "), outcome.detail),
                            style="red", markup=False)
        if self._bar:
            self._bar.update(self._task, completed=self._done, now=name)

    def left(self, seconds):
        if self._bar:
            self._bar.update(self._task, left=left(seconds), refresh=True)
        elif time.monotonic() - self._said >= _LINE_EVERY_SECONDS:
            self._said = time.monotonic()
            self._out.print("%s, run %d of %d, %s" % (self._phase, self._done, self._total, left(seconds)))


def ratio_text(ratio):
    if ratio is None:
        return ""
    if ratio["low"] == ratio["high"]:
        return "×%.3f" % ratio["value"]
    return "×%.3f [%.3f, %.3f]" % (ratio["value"], ratio["low"], ratio["high"])


def time_text(times):
    """The median, and half of its interval in per cent; one run has no interval."""
    if times["low"] == times["high"]:
        return duration(times["median"])
    return "%s ±%.1f %%" % (duration(times["median"]), 50 * (times["high"] - times["low"]) / times["median"])


def verdict_text(text):
    return Text(text or "", style=COLOURS.get(text, ""))


def _memory(pair):
    """The peak, and what was left of it where the program tells."""
    if pair["settled_rss_bytes"] is None:
        return amount(pair["peak_rss_bytes"])
    return "%s → %s" % (amount(pair["peak_rss_bytes"]), amount(pair["settled_rss_bytes"]))


def _pair_cells(pair):
    times = pair["time_per_operation"]
    if not times:
        return [Text(pair["status"].replace("_", " "), style="red")] + [""] * 7
    return [time_text(times), rate(pair["throughput"]),
            ratio_text(pair["ratio"]) if pair["verdict"] else "",
            verdict_text(pair["verdict"] or ("baseline" if pair["ratio"] else "")),
            _memory(pair), "%.2f" % pair["rss_ratio"] if pair["rss_ratio"] else "",
            "%s" % format(round(pair["minor_faults"]), ","), "%.0f %%" % (100 * pair["system_share"])]


_COLUMNS = ("time", "rate", "time ÷ baseline", "", "memory", "÷ base", "faults", "kernel")
# In a narrow terminal; results.json and the page have the rest.
_FEW_COLUMNS = ("time", "time ÷ baseline", "", "memory")
_WIDTH_FOR_ALL = 116


def _program_table(results, program, columns):
    table = Table(title="%s (%s)" % (program["title"], program["name"]), title_justify="left",
                  title_style="bold", caption=None, box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for title in columns:
        table.add_column(title, justify="left" if title == "" else "right", no_wrap=True)
    for pair in results["summary"]["pairs"]:
        if pair["program"] == program["name"]:
            cells = dict(zip(_COLUMNS, _pair_cells(pair)))
            table.add_row(pair["peer"], *(cells[title] for title in columns))
    return table


def _mean_table(results, verdict_of):
    baseline = results["settings"]["baseline"]
    table = Table(title="geometric mean over programs, in relation to %s" % baseline,
                  title_justify="left", title_style="bold", box=None, pad_edge=False)
    for title in ("", "programs", "time", "verdict", "memory"):
        table.add_column(title, justify="left" if title in ("", "verdict") else "right", no_wrap=True)
    for line in results["summary"]["peers"]:
        ratio = line["time_ratio"]
        said = "baseline" if line["peer"] == baseline else \
            verdict_of(ratio, results["settings"]["repeats"]) if ratio else None
        table.add_row(line["peer"], str(line["programs"]), ratio_text(ratio), verdict_text(said),
                      "×%.3f" % line["rss_ratio"] if line["rss_ratio"] else "")
    return table


def _group_table(results):
    """The means by group, or None where all programs are of one."""
    counts = summary.group_counts(results["summary"])
    if len(counts) < 2:
        return None
    table = Table(title="time by group of programs", title_justify="left", title_style="bold", box=None,
                  pad_edge=False)
    table.add_column("", no_wrap=True)
    for group, count in counts.items():
        table.add_column("%s, %d" % (group, count), justify="right", no_wrap=True)
    for line in results["summary"]["peers"]:
        ratios = [mean["time_ratio"] for mean in line["groups"] if mean["group"] in counts]
        table.add_row(line["peer"], *("×%.3f" % ratio["value"] if ratio else "" for ratio in ratios))
    return table


def show(results, out, verdict_of, least_repeats):
    """The tables, the failures, and whether the machine was quiet."""
    columns = _COLUMNS if out.width >= _WIDTH_FOR_ALL else _FEW_COLUMNS
    left_out = {program["name"] for program in results["programs"] if all(
        pair["status"] == "skipped" for pair in results["summary"]["pairs"] if pair["program"] == program["name"])}
    for program in results["programs"]:
        if program["name"] not in left_out:
            out.print()
            out.print(_program_table(results, program, columns))
    out.print()
    out.print(_mean_table(results, verdict_of))
    groups = _group_table(results)
    if groups:
        out.print()
        out.print(groups)
        out.print(report_words.mean_rule(results["settings"].get("mean") == "groups"))
    out.print("\nTime is for an operation where the program counts them, else for the whole run; below ×1 is "
              "faster than the baseline. Memory is the peak → what is left after the load. In brackets "
              "and after ±: %d %% confidence over %d repeats."
              % (round(100 * results["settings"]["confidence"]), results["settings"]["repeats"]))
    if results["settings"]["repeats"] < least_repeats:
        out.print("A verdict needs %d repeats." % least_repeats)
    show_failures(results, out)
    for remark in results["machine"]["remarks"]:
        out.print("Note: %s." % remark.rstrip("."), style="yellow", markup=False)


def show_failures(results, out):
    lines = {}
    for failure in results["summary"]["failures"]:
        key = failure["program"], failure["status"].replace("_", " "), failure["detail"]
        lines.setdefault(key, []).append(failure["peer"])
    if lines:
        out.print("\nNot measured:", style="bold red")
    for (program, status, detail), peers in lines.items():
        where = "" if len(peers) == len(results["peers"]) > 1 else " on " + ", ".join(peers)
        out.print("  %s%s: %s: %s" % (program, where, status, detail), style="red", markup=False, soft_wrap=True)
