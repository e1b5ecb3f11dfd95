#!/usr/bin/python3
"""The comparison of allocators as Markdown tables, for docs/benchmarks.md.

Usage: tools/bench_harness/markdown.py RESULTS.json
"""
import json
import math
import re
import sys

import report_view as view
import report_words as words
from report_view import View

NOTHING = "–"


def escape(text):
    """`text` for a cell: it cannot end the cell or start markup."""
    text = " ".join(str(text).split())
    return re.sub(r"([\\`*_{}\[\]<>|~#&$!])", r"\\\1", text)


def code(text):
    """`text` as a code span, which escapes nothing inside."""
    text = " ".join(str(text).split())
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return "%s %s %s" % (fence, text, fence) if len(fence) > 1 else "`%s`" % text


def table(header, rows, align=None):
    align = align or ["---"] + ["--:"] * (len(header) - 1)
    lines = [header, align] + rows
    return "".join("| %s |\n" % " | ".join(line) for line in lines)


def cell(shown, best, pair):
    if shown is None:
        return NOTHING if not pair or pair["status"] == "ok" else words.status_word(pair["status"])
    return "**%s**" % shown if best else shown


def ratio_cell(ratio):
    """The last column: the subject by the best rival."""
    if ratio is None:
        return NOTHING
    return "%s (%s)" % (words.ratio_text(ratio.value), words.range_text(ratio))


def plain_ratio(figures, subject, rivals):
    rival = min((figures[n] for n in rivals if figures.get(n) is not None), default=None)
    ours = figures.get(subject)
    if not ours or not rival:
        return NOTHING
    return words.ratio_text(ours / rival)


def grid(shown, figures_of, show, programs, last, best_of=view.best_names):
    """A table of program rows and allocator columns.

    figures_of(program) is {peer: figure or None}; `last` gives the last cell of a row."""
    rows = []
    for program in programs:
        figures = figures_of(program)
        if not any(f is not None for f in figures.values()) and all(
                not shown.pair(program["name"], name) for name in shown.names):
            continue
        best = best_of(figures)
        rows.append([escape(program["title"])] + [
            cell(None if figures[n] is None else show(program["name"], n, figures[n]), n in best,
                 shown.pair(program["name"], n)) for n in shown.names]
            + [last(program["name"], figures)])
    header = ["program"] + [escape(n) for n in shown.names] \
        + ["%s / best other" % escape(shown.subject)]
    return table(header, rows)


def time_tables(shown):
    def figures_of(program):
        return {n: getattr(shown.time(program["name"], n), "value", None) for n in shown.names}

    def show(program, name, figure):
        return ("%s %s" % (words.duration(figure), shown.spread(program, name))).strip()

    def last(program, _):
        best = shown.against_best(program)
        return ratio_cell(best and best[1])

    parts = []
    for group, title in view.GROUPS:
        programs = [p for p in shown.timed if p["group"] == group]
        if programs:
            parts.append("#### Time: %s\n\n%s" % (
                title.lower(), grid(shown, figures_of, show, programs, last)))
    return "\n".join(parts)


def simple_table(shown, key, show, title, less_is_better=True):
    def figures_of(program):
        return {n: shown.figure(program["name"], n, key) for n in shown.names}

    def last(_, figures):
        return plain_ratio(figures, shown.subject, shown.rivals) if less_is_better else NOTHING

    programs = [p for p in shown.programs
                if any(f is not None for f in figures_of(p).values())]
    if not programs:
        return ""
    return title + "\n\n" + grid(
        shown, figures_of, lambda _program, _name, figure: show(figure), programs, last,
        view.best_names if less_is_better else lambda _: ())


def standing_table(shown):
    rows = []
    for name in sorted(shown.names, key=lambda n: getattr(shown.time_mean(n), "value", math.inf)):
        time, memory = shown.time_mean(name), shown.memory_mean(name)
        mean = shown.means.get(name, {})
        rows.append(["**%s**" % escape(name) if name == shown.subject else escape(name),
                     ratio_cell(time), words.ratio_text(memory) if memory else NOTHING,
                     str(mean.get("programs", 0)), str(shown.failures_of(name) or NOTHING)])
    return table(["allocator", "time", "memory", "programs", "failures"], rows)


def group_table(shown):
    """The means by group; nothing where all programs are of one."""
    if not shown.groups:
        return ""
    rows = []
    for name in sorted(shown.names, key=lambda n: getattr(shown.time_mean(n), "value", math.inf)):
        times = [(shown.group_mean(name, group)[0]) for group, _, _ in shown.groups]
        rows.append(["**%s**" % escape(name) if name == shown.subject else escape(name)]
                    + [ratio_cell(time) for time in times + [shown.time_mean(name)]])
    header = ["time"] + ["%s, %d" % (group, count) for group, _, count in shown.groups] + ["all"]
    return "%s\n%s" % (words.mean_rule(shown.by_group) + "\n", table(header, rows))


def machine_lines(results):
    machine, settings, source = results["machine"], results["settings"], results["source"]
    lines = ["- %s, %d processors, %s; %s, Linux %s; huge pages: %s" % (
        escape(machine["cpu"]), machine["processors"], words.size(machine["memory_bytes"]),
        escape(machine["os"]), escape(machine["kernel"]), escape(machine["huge_pages"]))]
    if "checkout" in settings:
        lines.append("- programs of mimalloc-bench at %s" % code((settings["checkout"] or "unknown")[:12]))
    lines.append("- revision %s%s, %s; %d runs each after %d to warm up%s" % (
        code((source["revision"] or "unknown")[:12]),
        " with local changes" if source["dirty"] else "", escape(results["started"]),
        settings["repeats"], settings["warmups"],
        ", pinned to processors %s" % settings["pin"] if settings["pin"] else ""))
    lines.append("- noise %.1f%%, load %.2f before and %.2f after%s" % (
        machine["noise_percent"], machine["load_before"], machine["load_after"],
        "; **the machine was noisy**" if machine["noisy"] else ""))
    lines += ["- " + escape(remark) for remark in machine["remarks"]]
    versions = ["%s %s" % (escape(p["name"]), escape(p["version"])) for p in results["peers"]]
    lines.append("- " + ", ".join(versions))
    lines.append("- reproduce: " + code(" ".join(results["command"])))
    return "\n".join(lines) + "\n"


def failure_lines(shown):
    lines = ["- %s under %s: **%s**%s" % (
        code(p.program), escape(shown.who(p)), escape(words.status_word(p.status)),
        ": " + escape(p.detail) if p.detail else "") for p in shown.problems()]
    return "\n".join(lines or ["None: every program ran under every allocator."]) + "\n"


def comparison(results):
    """All tables; their headings go below one of the second level."""
    shown = View(results)
    baseline = escape(shown.baseline)
    parts = [
        "### Overall\n", "Geometric means against %s, with %d%% intervals; below 1 is better.\n" % (
            baseline, round(100 * shown.settings["confidence"])),
        standing_table(shown), group_table(shown), "### Failures and omissions\n", failure_lines(shown), "### Time\n",
        "Per operation, or of the whole program; ± is half the interval; the best in a row is "
        "bold; ▾ faster and ▴ slower than %s beyond the noise.\n" % baseline,
        time_tables(shown),
        simple_table(shown, "peak_rss_bytes", words.size, "### Memory\n\nPeak resident memory."),
        simple_table(shown, "settled_rss_bytes", words.size, "#### Memory after settling"),
        simple_table(shown, "minor_faults", words.number, "### Minor page faults"),
        simple_table(shown, "system_share", words.share, "### Share of time in the kernel"),
        *(simple_table(shown, key, show, "### " + title, less) for title, key, show, less in words.COUNTED),
        "### The machine\n", machine_lines(results)]
    return "\n".join(part for part in parts if part)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: tools/bench_harness/markdown.py RESULTS.json")
    with open(sys.argv[1], encoding="utf-8") as file:
        print(comparison(json.load(file)), end="")


if __name__ == "__main__":
    main()
