#!/usr/bin/python3
"""The page of a benchmark run: one HTML file that needs nothing else.

Usage: tools/bench_harness/report.py RESULTS.json PAGE.html [HISTORY.jsonl]
HISTORY has one earlier run on each line, as report.write() takes them, oldest first.
"""
import json
import math
import pathlib
import shlex
import sys

import jinja2
import markupsafe

import figures
import plots
import report_view as view
import report_words as words
from report_view import View

HERE = pathlib.Path(__file__).resolve().parent
STRIP_ROWS = 22  # lines in one figure of all allocators, so that three stand side by side
NAMED_LOSSES = 5
NAMED_POINTS = 8
OPEN_RIVALS = 3  # comparisons that stand open; the others fold


def strip_figures(shown, looks):
    """All allocators per program, by the subject's time, worst losses first."""
    order = {entry.program["name"]: index for index, entry in enumerate(shown.standings())}
    lines = []
    for program in sorted(shown.timed, key=lambda p: order.get(p["name"], len(order))):
        dots = [(name, shown.versus(program["name"], name, shown.subject))
                for name in shown.names if name != shown.subject]
        dots = [dot for dot in dots if dot[1]]
        if dots:
            lines.append((program, dots))
    span = plots.strip_span([ratio.value for _, dots in lines for _, ratio in dots])
    rows = []
    for program, dots in lines:
        own = shown.time(program["name"], shown.subject)
        scaled = view.Interval(1, own.low / own.value, own.high / own.value)
        beyond = ["%s %s×" % (name, words.ratio_text(ratio.value)) for name, ratio in dots
                  if not span[0] < ratio.value < span[1]]
        rows.append((program["title"], ", ".join(beyond), dots + [(shown.subject, scaled)]))
    count = math.ceil(len(rows) / STRIP_ROWS)
    size = math.ceil(len(rows) / count) if count else 0
    label = "Time of every allocator by that of %s, part %%d of %d" % (shown.subject, count)
    return [plots.strip(rows[i * size:(i + 1) * size], span, looks, "strip%d" % i, label % (i + 1))
            for i in range(count)]


def versus_figures(shown):
    """(rival, summary sentence, figure) for each other allocator, the best first."""
    found = []
    for rival in sorted(shown.names, key=lambda n: (n not in shown.rivals, standing(shown, n))):
        rows = []
        for program in shown.timed:
            ratio = shown.versus(program["name"], shown.subject, rival)
            if ratio:
                rows.append((program["title"], ratio,
                             shown.verdict(program["name"], shown.subject, rival)))
        rows.sort(key=lambda row: -row[1].value)
        if not rows:
            continue
        verdicts = [verdict for _, _, verdict in rows]
        counts = ", ".join("%s in %d" % (words, verdicts.count(verdict)) for verdict, words in (
            ("faster", "faster"), ("slower", "slower"), ("same", "the same"),
            ("can't tell", "cannot be told")) if verdict in verdicts)
        figure = plots.versus(rows, "versus%d" % len(found), "%s against %s by program: %s" % (
            shown.subject, rival, counts))
        found.append({"rival": rival, "counts": counts, "figure": figure,
                      "mean": shown.overall(shown.subject, rival)[0]})
    return found


def standing(shown, name):
    mean = shown.time_mean(name)
    return mean.value if mean else math.inf


def overview_figures(shown, looks):
    """(title, figure) of the means: time, memory."""
    times = [(n, shown.time_mean(n)) for n in shown.names if shown.time_mean(n)]
    memories = [(n, view.Interval(*[shown.memory_mean(n)] * 3)) for n in shown.names
                if shown.memory_mean(n)]
    found = []
    for title, rows, key in (("Time", times, "time"), ("Peak memory", memories, "memory")):
        if rows:
            rows.sort(key=lambda row: row[1].value)
            label = "%s by that of %s: %s" % (title, shown.baseline, ", ".join(
                "%s %s" % (name, words.ratio_text(r.value)) for name, r in rows))
            found.append(("%s against %s" % (title, shown.baseline),
                          plots.forest(rows, looks, "mean-" + key, label)))
    return found


def scatter_figures(shown, looks):
    means = [(n, n, shown.time_mean(n).value, shown.memory_mean(n)) for n in shown.names
             if shown.time_mean(n) and shown.memory_mean(n)]
    found = []
    if means:
        label = "Time and memory of each allocator against %s: %s" % (shown.baseline, ", ".join(
            "%s %.2f and %.2f" % mean[1:] for mean in means))
        found.append(("Each allocator, mean over programs, against %s" % shown.baseline,
                      plots.scatter(means, looks, "scatter-mean", label, reach=33)))
    points = scatter_points(shown, shown.best_rival) if shown.best_rival else []
    if points:
        label = "Time and memory of %s against %s in %d programs" % (
            shown.subject, shown.best_rival, len(points))
        found.append(("Each program, %s against %s" % (shown.subject, shown.best_rival),
                      plots.scatter(points, looks, "scatter-program", label)))
    return found


def scatter_points(shown, rival):
    """The subject by `rival` in every program; those far out have their names."""
    points = []
    for program in shown.timed:
        time = shown.versus(program["name"], shown.subject, rival)
        ours, theirs = (shown.figure(program["name"], name, "peak_rss_bytes")
                        for name in (shown.subject, rival))
        if time and view.usable(ours) and view.usable(theirs):
            points.append((shown.subject, program["title"], time.value, ours / theirs))
    points.sort(key=lambda point: -math.hypot(math.log(point[2]), math.log(point[3])))
    return points[:NAMED_POINTS] + [(p[0], "", *p[2:]) for p in points[NAMED_POINTS:]]


def scaling_figures(shown, looks):
    families = {}
    for program in shown.timed:
        if program["family"] and program["threads"]:
            families.setdefault(program["family"], []).append(program)
    found = []
    for family, members in families.items():
        lines = {}
        for name in shown.names:
            times = [(p["threads"], shown.time(p["name"], name)) for p in members]
            line = sorted((threads, 1 / time.value) for threads, time in times if time)
            if line:
                lines[name] = line
        if len({threads for line in lines.values() for threads, _ in line}) > 1:
            label = "Operations per second of %s over threads" % family
            found.append(plots.scaling(
                family, lines, shown.results["machine"]["processors"], looks,
                "scaling%d" % len(found), label))
    return found


def trend_figures(shown, history, looks):
    """Time and memory over past runs, this one last; nothing unless there are two runs."""
    runs = [run for run in history if run["started"] != shown.results["started"]]
    runs.append({"started": shown.results["started"], "peers": {
        name: {"time_ratio": getattr(shown.time_mean(name), "value", None),
               "rss_ratio": shown.memory_mean(name)} for name in shown.names}})
    if len(runs) < 2:
        return []
    names = [run["started"][5:10] for run in runs]
    found = []
    for key, title in (("time_ratio", "Time"), ("rss_ratio", "Peak memory")):
        lines = {}
        for name in shown.names:
            line = [(index, ratio_of(run, name, key)) for index, run in enumerate(runs)]
            line = [(index, value) for index, value in line if view.usable(value)]
            if line:
                lines[name] = line
        if lines:
            title = "%s against %s" % (title, shown.baseline)
            label = "%s over %d runs" % (title, len(runs))
            found.append(plots.trend(title, names, lines, looks, "trend-" + key, label))
    return found


def ratio_of(run, name, key):
    """History keeps a number, or an interval as the results do."""
    value = run["peers"].get(name, {}).get(key)
    return value.get("value") if isinstance(value, dict) else value


def table(shown, title, programs, figure_of, show, less_is_better=True):
    """Rows of (program, cells, subject by the best rival); a cell is (text, class)."""
    rows = []
    for program in programs:
        values = {name: figure_of(program["name"], name) for name in shown.names}
        best = view.best_names(values) if less_is_better else ()
        cells = [table_cell(shown, program["name"], name, values[name], name in best, show)
                 for name in shown.names]
        theirs = [values[n] for n in shown.rivals if values[n] is not None]
        ratio = None
        if less_is_better and theirs and min(theirs) > 0 and values[shown.subject] is not None:
            ratio = values[shown.subject] / min(theirs)
        rows.append({"program": program, "cells": cells, "ratio": ratio})
    return {"title": title, "rows": rows, "open": show is words.duration}


def table_cell(shown, program, name, value, best, show):
    if value is None:
        status = (shown.pair(program, name) or {"status": "ok"})["status"]
        return {"text": "–" if status == "ok" else words.status_word(status),
                "kind": "none" if status in ("ok", "skipped") else "bad", "note": ""}
    return {"text": show(value), "kind": "best" if best else "",
            "note": shown.spread(program, name) if show is words.duration else ""}


def tables(shown):
    """All figures of all programs."""
    def of(key):
        return lambda program, name: shown.figure(program, name, key)

    def time(program, name):
        return getattr(shown.time(program, name), "value", None)

    found = []
    for group, title in view.GROUPS:
        programs = [p for p in shown.timed if p["group"] == group]
        if programs:
            found.append(table(shown, "Time: " + title.lower(), programs, time, words.duration))
    for title, key, show, less_is_better in (
            ("Peak memory", "peak_rss_bytes", words.size, True),
            ("Memory after settling", "settled_rss_bytes", words.size, True),
            ("Minor page faults", "minor_faults", words.number, True),
            ("Share of processor time in the kernel", "system_share", words.share, True), *words.COUNTED):
        programs = [p for p in shown.programs
                    if any(shown.figure(p["name"], n, key) is not None for n in shown.names)]
        if programs:
            found.append(table(shown, title, programs, of(key), show, less_is_better))
    return found


def render(results, history=()):
    """The page as a string."""
    shown = View(results)
    looks = figures.styles(shown.names, shown.subject)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(svg=markupsafe.Markup, ratio=words.ratio_text, size=words.size,
                               range=words.range_text, status=words.status_word)
    standings = shown.standings()
    order = sorted(shown.names, key=lambda name: standing(shown, name))
    return environment.get_template("report.html.j2").render(
        r=results, v=shown, looks=looks, words=words,
        order=order, headline=view.headline(shown, order),
        overview=overview_figures(shown, looks), strips=strip_figures(shown, looks),
        versus=versus_figures(shown), scatters=scatter_figures(shown, looks),
        scaling=scaling_figures(shown, looks), trends=trend_figures(shown, history, looks),
        tables=tables(shown), counted=any(run.get("counters") for run in results["runs"]), standings=standings,
        losses=[s for s in standings if s.verdict == "slower"][:NAMED_LOSSES],
        wins=[s for s in reversed(standings) if s.verdict == "faster"][:NAMED_LOSSES],
        open_rivals=OPEN_RIVALS, commandline=shlex.join(results["command"]))


def write(results, path, history=()):
    path.write_text(render(results, history), encoding="utf-8")


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: tools/bench_harness/report.py RESULTS.json PAGE.html [HISTORY.jsonl]")
    results = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    history = []
    if len(sys.argv) == 4:
        with open(sys.argv[3], encoding="utf-8") as file:
            history = [json.loads(line) for line in file]
    write(results, pathlib.Path(sys.argv[2]), history)


if __name__ == "__main__":
    main()
