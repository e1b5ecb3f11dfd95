"""The plots of report.html: each function takes plain data and returns one <svg> element.

`looks` is {name: figures.Style}, `key` the figure's own name on the page, `label` what a screen
reader says in its place.
"""
import math

import matplotlib
import matplotlib.ticker

from figures import (FASTER, INK, MUTED, RULE, SETTINGS, SLOWER, SURFACE, WIDTH, finish, log_axis,
                     new_figure, shorten)

# What is the same or cannot be told is muted and hollow.
VERDICT_LOOKS = {"faster": (FASTER, "o"), "slower": (SLOWER, "s")}


def limits(values, lowest=0.2, highest=8):
    """Where a logarithmic axis around 1 begins and ends; values beyond lie at its edge."""
    values = [v for v in values if v] + [1]
    low = max(min(min(values) / 1.06, 0.92), lowest)
    return low, min(max(max(values) * 1.06, 1.09), highest)


def whisker(axes, y, ratio, style, span, filled=True):
    """A dot with its interval, kept inside the axes."""
    low, high = span
    value = min(max(ratio.value, low * 1.01), high / 1.01)
    line = max(ratio.low, low), min(ratio.high, high)
    if line[0] < line[1]:
        axes.plot(line, (y, y), color=style.color, linewidth=1.4, solid_capstyle="butt", zorder=3)
    axes.plot((value,), (y,), linestyle="none", marker=style.marker, markersize=style.size,
              color=style.color, markerfacecolor=style.color if filled else SURFACE,
              markeredgewidth=1 if not filled else 0.4,
              markeredgecolor=style.color if not filled else SURFACE,
              zorder=6 if style.ours else 4)


def middle_line(axes):
    axes.axvline(1, color=MUTED, linewidth=1, zorder=2)


def forest(rows, looks, key, label):
    """One row per allocator: [(name, Interval)]; the figures stand at the right."""
    height = 17 * len(rows) + 34
    with matplotlib.rc_context(SETTINGS):
        figure, axes = new_figure(height, 112, 46, 4, 22)
        span = limits([v for _, ratio in rows for v in ratio])
        log_axis(axes.xaxis, *span, WIDTH - 158)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), [shorten(name, 18) for name, _ in rows])
        axes.grid(axis="x")
        middle_line(axes)
        for tick, (name, _) in zip(axes.get_yticklabels(), rows):
            tick.set_color(INK)
            tick.set_fontweight("bold" if looks[name].ours else "normal")
        for y, (name, ratio) in enumerate(rows):
            whisker(axes, y, ratio, looks[name], span)
            axes.annotate("%.2f" % ratio.value, (1, y), (6, 0), xycoords=("axes fraction", "data"),
                          textcoords="offset points", va="center", annotation_clip=False)
        axes.spines["left"].set_visible(False)
        return finish(figure, key, label)


def strip_span(values):
    return limits(values, 0.33, 4)


def strip(rows, span, looks, key, label):
    """All allocators on a line per program: [(title, note, [(name, Interval)])].

    `span` is that of strip_span() over all parts of a figure; values beyond it lie at its edge, and
    `note` names them."""
    height = 30 * len(rows) + 46
    with matplotlib.rc_context(SETTINGS):
        figure, axes = new_figure(height, 6, 6, 18, 20)
        log_axis(axes.xaxis, *span, WIDTH - 12)
        axes.tick_params(labeltop=True)
        axes.set_ylim(len(rows) - 0.6, -0.85)
        axes.yaxis.set_visible(False)
        axes.grid(axis="x")
        axes.spines["left"].set_visible(False)
        axes.axvspan(span[0], 1, color=SLOWER, alpha=0.07, linewidth=0, zorder=0)
        middle_line(axes)
        inside = {"xycoords": ("axes fraction", "data"), "va": "center"}
        for y, (title, note, dots) in enumerate(rows):
            room = 58 - min(len(note), 28)
            axes.annotate(shorten(title, room), (0.005, y - 0.43), color=INK, **inside)
            axes.annotate(shorten(note, 28), (0.995, y - 0.43), color=MUTED, ha="right", **inside)
            axes.axhline(y, color=RULE, linewidth=0.6, zorder=1)
            for name, ratio in sorted(dots, key=lambda dot: looks[dot[0]].ours):
                whisker(axes, y, ratio, looks[name], span)
        return finish(figure, key, label)


def versus(rows, key, label):
    """One allocator against another: [(title, Interval, verdict)], a line per program."""
    height = 14.5 * len(rows) + 38
    with matplotlib.rc_context(SETTINGS):
        figure, axes = new_figure(height, 160, 34, 18, 20)
        span = limits([v for _, ratio, _ in rows for v in ratio], 0.25, 6)
        log_axis(axes.xaxis, *span, WIDTH - 194)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), [shorten(title, 26) for title, *_ in rows])
        axes.tick_params(axis="y", labelcolor=INK)
        axes.tick_params(axis="x", labeltop=True)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")
        middle_line(axes)
        for y, (_, ratio, verdict) in enumerate(rows):
            color, marker = VERDICT_LOOKS.get(verdict, (MUTED, "d"))
            low, high = max(ratio.low, span[0]), min(ratio.high, span[1])
            value = min(max(ratio.value, span[0] * 1.01), span[1] / 1.01)
            if low < high:
                axes.plot((low, high), (y, y), color=color, linewidth=1.4, zorder=3)
            axes.plot((value,), (y,), marker=marker, markersize=5, color=color, zorder=4,
                      markerfacecolor=SURFACE if color == MUTED else color)
            axes.annotate("%.2f" % ratio.value, (1, y), (30, 0), va="center", ha="right",
                          xycoords=("axes fraction", "data"), textcoords="offset points",
                          color=color, annotation_clip=False)
        return finish(figure, key, label)


def scatter(points, looks, key, label, reach=11):
    """Time (across) against memory (up), both relative: [(name, text, time, memory)].

    `text` is written beside the point, at most `reach` higher or lower, where there is room."""
    height = 290
    with matplotlib.rc_context(SETTINGS):
        figure, axes = new_figure(height, 30, 12, 20, 34)
        spans = [limits([p[i] for p in points], 0.1, 10) for i in (2, 3)]
        log_axis(axes.xaxis, *spans[0], WIDTH - 42)
        log_axis(axes.yaxis, *spans[1], height - 54)
        axes.grid()
        axes.axvline(1, color=MUTED, linewidth=1)
        axes.axhline(1, color=MUTED, linewidth=1)
        axes.set_xlabel("more time \u2192", loc="right")
        axes.set_title("\u2191 more memory", color=MUTED, fontsize=10)
        inside = []
        for name, text, *at in points:
            look = looks[name]
            x, y = (min(max(v, low * 1.01), high / 1.01) for v, (low, high) in zip(at, spans))
            axes.plot((x,), (y,), marker=look.marker, color=look.color, linestyle="none",
                      markersize=look.size, markeredgecolor=SURFACE, markeredgewidth=0.6, zorder=4)
            inside.append((look, shorten(text, 26), x, y))
        name_points(axes, inside, reach)
        return finish(figure, key, label)


def protection(points, looks, key, label):
    """Time (across), relative, against the share of attacks that are stopped (up): [(name, time, share)]."""
    height = 340
    with matplotlib.rc_context(SETTINGS):
        figure, axes = new_figure(height, 34, 12, 20, 34)
        log_axis(axes.xaxis, *limits([time for _, time, _ in points], 0.1, 20), WIDTH - 46)
        axes.set_ylim(0, 1)
        axes.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1, 0))
        axes.grid()
        axes.axvline(1, color=MUTED, linewidth=1)
        axes.set_xlabel("more time \u2192", loc="right")
        axes.set_title("\u2191 more attacks stopped", color=MUTED, fontsize=10)
        for name, *at in points:
            look = looks[name]
            axes.plot(*([value] for value in at), marker=look.marker, color=look.color, linestyle="none",
                      markersize=look.size, markeredgecolor=SURFACE, markeredgewidth=0.6, zorder=4)
        name_points(axes, [(looks[name], shorten(name, 26), *at) for name, *at in points], 22)
        return finish(figure, key, label)


def name_points(axes, points, reach):
    """Puts each text beside its point, at the first of some places where it covers nothing."""
    at = [tuple(axes.transData.transform(point[2:])) for point in points]
    frame = axes.get_window_extent()
    taken = [(x - 5, y - 5, x + 5, y + 5) for x, y in at]
    places = [(dx, dy, side) for dy in (0, 11, -11, 22, -22, 33, -33) if abs(dy) <= reach
              for dx, side in ((8, "left"), (-8, "right"))]
    for (x, y), (look, text, *data) in sorted(
            zip(at, points), key=lambda entry: (not entry[1][0].ours, entry[1][1])):
        width = 6.1 * len(text)
        for dx, dy, side in places if text else ():
            left = x + dx - (width if side == "right" else 0)
            box = left, y + dy - 5, left + width, y + dy + 5
            if (frame.x0 <= left and box[2] <= frame.x1 and frame.y0 <= box[1]
                    and box[3] <= frame.y1 + 8) and not any(
                    box[0] < t[2] and t[0] < box[2] and box[1] < t[3] and t[1] < box[3]
                    for t in taken):
                taken.append(box)
                axes.annotate(text, data, (dx, dy), textcoords="offset points", ha=side,
                              va="center", color=look.color)
                break


def short_count(value, _=None):
    for scale, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return "%g%s" % (round(value / scale, 1), unit)
    return "%g" % round(value, 3)


def scaling(title, lines, processors, looks, key, label):
    """Work per second over threads: {name: [(threads, rate)]}; a mark where processors end."""
    with matplotlib.rc_context(SETTINGS):
        figure, axes = new_figure(216, 40, 12, 30, 34)
        axes.set_title(shorten(title, 46), color=INK, x=-0.1, pad=10)
        counts = sorted({threads for line in lines.values() for threads, _ in line})
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
        axes.grid()
        if counts[0] < processors < counts[-1]:
            axes.axvline(processors, color=MUTED, linewidth=1, linestyle=(0, (3, 3)))
        for name, line in lines.items():
            draw_line(axes, line, looks[name])
        axes.set_ylim(0)
        axes.yaxis.set_major_locator(matplotlib.ticker.MaxNLocator(5))
        axes.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(short_count))
        axes.set_xlabel("threads")
        return finish(figure, key, label)


def draw_line(axes, line, look):
    xs, ys = zip(*line)
    axes.plot(xs, ys, color=look.color, marker=look.marker, markersize=look.size - 0.5,
              linewidth=2.2 if look.ours else 1.1, markeredgecolor=SURFACE, markeredgewidth=0.4,
              zorder=6 if look.ours else 4)


def trend(title, names, lines, looks, key, label):
    """A ratio over past runs: names of the runs, {name: [(run, ratio)]}."""
    with matplotlib.rc_context(SETTINGS):
        figure, axes = new_figure(240, 34, 12, 24, 24)
        axes.set_title(title, color=INK, x=-0.08)
        log_axis(axes.yaxis, *limits([v for line in lines.values() for _, v in line]), 192)
        step = max(1, math.ceil(len(names) / 5))
        shown = range((len(names) - 1) % step, len(names), step)
        axes.set_xticks(list(shown), [names[index] for index in shown])
        axes.set_xlim(-0.4, len(names) - 0.6)
        axes.grid(axis="y")
        axes.axhline(1, color=MUTED, linewidth=1)
        for name, line in lines.items():
            draw_line(axes, line, looks[name])
        return finish(figure, key, label)
