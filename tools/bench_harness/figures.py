"""Figures that stand inside a page: what all plots of plots.py share.

Figures are WIDTH units wide, about the width of a phone, so that their text is never scaled down
there; wider screens show several side by side. Colours are CSS variables of the page, so that one
figure serves light, dark and paper. The same data gives the same bytes.
"""
import html
import io
import math
import re
import warnings
import xml.etree.ElementTree as ElementTree

import matplotlib
import matplotlib.ticker
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle

WIDTH = 340
# Stand-ins that matplotlib draws with: the last byte says which CSS variable takes its place.
INK, MUTED, RULE, SURFACE, FASTER, SLOWER = ("#0000%02x" % n for n in range(1, 7))
NAMED = {1: "ink", 2: "muted", 3: "rule", 4: "surface", 5: "faster", 6: "slower"}
FIRST_PEER = 16
# One colour (--peer-N) and one shape per allocator, for good. The rest take what is left.
KNOWN_PEERS = ("hakmem", "glibc", "jemalloc", "mimalloc", "mimalloc3", "tcmalloc", "scudo",
               "snmalloc", "rpmalloc", "hakmem-hardened", "hakmem-tracing")
MARKERS = ("D", "s", "^", "o", "v", "P", "X", "<", ">", "d", "p", "h", "8", "*")
SETTINGS = {
    "svg.hashsalt": "hakmem", "svg.fonttype": "none", "text.parse_math": False, "font.size": 10,
    "text.color": INK, "axes.labelcolor": MUTED, "axes.edgecolor": RULE, "xtick.color": RULE,
    "ytick.color": RULE, "xtick.labelcolor": MUTED, "ytick.labelcolor": MUTED,
    "grid.color": RULE, "grid.linewidth": 0.6, "axes.linewidth": 0.8, "axes.axisbelow": True,
    "axes.titlesize": 11, "axes.titlelocation": "left", "axes.unicode_minus": True,
    "axes.spines.top": False, "axes.spines.right": False, "figure.facecolor": "none",
    "axes.facecolor": "none", "xtick.major.size": 0, "ytick.major.size": 0,
    "xtick.minor.size": 0, "ytick.minor.size": 0,
}
LOG_TICKS = (0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50)


class Style:
    """How an allocator is drawn everywhere."""

    def __init__(self, slot, ours):
        self.slot = slot
        self.color = "#0000%02x" % (FIRST_PEER + slot)
        self.marker = MARKERS[slot]
        self.ours = ours
        self.size = 7 if ours else 5.8

    def outline(self):
        """The shape as an SVG path within -10…10, for legends."""
        marker = MarkerStyle(self.marker)
        path = marker.get_path().transformed(marker.get_transform())
        extent = abs(path.vertices).max()
        rings = path.to_polygons(closed_only=False)
        return " ".join("M" + "L".join("%.1f %.1f" % (9 * x / extent, -9 * y / extent)
                                       for x, y in ring) + "Z" for ring in rings)


def styles(names, subject):
    """{name: Style} for these allocators."""
    free = [slot for slot in range(len(MARKERS))
            if slot >= len(KNOWN_PEERS) or KNOWN_PEERS[slot] not in names]
    free.sort(key=lambda slot: (slot < len(KNOWN_PEERS), slot))
    found = {}
    for name in names:
        if name in KNOWN_PEERS:
            slot = KNOWN_PEERS.index(name)
        else:
            slot = free.pop(0) if free else len(found) % len(MARKERS)
        found[name] = Style(slot, name == subject)
    return found


def shorten(text, limit):
    text = " ".join(str(text).split())
    return text if len(text) <= limit else text[:limit - 1].rstrip() + "…"


def variable(match):
    index = int(match.group(1), 16)
    name = NAMED.get(index) or "peer-%d" % (index - FIRST_PEER)
    return "var(--%s)" % name


def styled(text):
    text = re.sub(r"#0000([0-9a-f]{2})\b", variable, text)
    return re.sub(r"'[^;]*?sans-serif", "var(--sans)", text)


def element(node, prefix, used):
    """`node` as HTML's kind of SVG: no namespaces, ids only where used and unlike other figures'."""
    tag = node.tag.split("}")[-1]
    if tag in ("metadata", "style", "title"):
        return ""
    attributes = []
    for key, value in node.attrib.items():
        key = key.split("}")[-1]
        if key == "id":
            if value not in used:
                continue
            value = prefix + value
        elif key == "href":
            value = "#" + prefix + value[1:]
        elif key in ("style", "fill", "stroke"):
            value = styled(value)
        elif key == "clip-path":
            value = value.replace("url(#", "url(#" + prefix)
        if key in ("d", "x", "y", "width", "height", "transform", "style"):
            value = re.sub(r"-?\d+\.\d{2,}", lambda m: "%g" % round(float(m.group()), 2), value)
        attributes.append(' %s="%s"' % (key, html.escape(value.strip())))
    inside = html.escape(node.text.strip()) if tag == "text" and node.text else ""
    inside += "".join(element(child, prefix, used) for child in node)
    if tag in ("g", "defs") and not inside:
        return ""
    return "<%s%s>%s</%s>" % (tag, "".join(attributes), inside, tag)


def finish(figure, key, label):
    """The <svg> of `figure`; `key` is the figure's own on the page, `label` is read aloud."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        # The page's fonts draw the text, so what matplotlib's font lacks does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from current font")
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(file.getvalue())
    text = file.getvalue().decode()
    used = set(re.findall(r'xlink:href="#([^"]+)"', text))
    used.update(re.findall(r'clip-path="url\(#([^)]+)\)"', text))
    body = "".join(element(child, key + "-", used) for child in root)
    box = " ".join("%g" % float(v) for v in root.attrib["viewBox"].split())
    return '<svg role="img" aria-label="%s" viewBox="%s">%s</svg>' % (
        html.escape(label), box, body)


def new_figure(height, left, right, top, bottom):
    """A figure of WIDTH × height with one pair of axes; margins in the same units."""
    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    axes = figure.add_axes((left / WIDTH, bottom / height, (WIDTH - left - right) / WIDTH,
                            (height - top - bottom) / height))
    return figure, axes


def tick_text(value):
    return "%g" % value


def log_axis(axis, low, high, room):
    """A logarithmic axis from `low` to `high` with labels at least 30 of its `room` units apart."""
    setter = axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim
    (axis.axes.set_xscale if axis.axis_name == "x" else axis.axes.set_yscale)("log")
    setter(low, high)
    per_unit = room / math.log(high / low)
    chosen = []
    for tick in sorted(LOG_TICKS, key=lambda tick: (tick != 1, abs(math.log(tick)))):
        if low <= tick <= high and all(abs(math.log(tick / t)) * per_unit >= 30 for t in chosen):
            chosen.append(tick)
    axis.set_major_locator(matplotlib.ticker.FixedLocator(sorted(chosen)))
    axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda v, _: tick_text(v)))
    axis.set_minor_locator(matplotlib.ticker.NullLocator())
