"""Figures in words, for the page and the Markdown tables."""
import math

STATUS_WORDS = {"not_loaded": "not loaded", "timed_out": "timed out"}


def status_word(status):
    return STATUS_WORDS.get(status, status)


def mean_rule(by_group):
    """How a mean over all programs is taken."""
    if by_group:
        return "The mean over all is the geometric mean of the groups' means: each group counts the same."
    return "The mean over all counts each program the same."


def three_digits(value):
    """Three significant digits, never in scientific notation."""
    if value == 0:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    return "%.*f" % (max(digits, 0), round(value, digits))


def duration(seconds):
    for limit, scale, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1, 1e3, "ms")):
        if seconds < limit:
            return "%s %s" % (three_digits(seconds * scale), unit)
    return "%s s" % three_digits(seconds)


def size(count):
    for limit, scale, unit in ((1 << 20, 1 << 10, "KiB"), (1 << 30, 1 << 20, "MiB")):
        if count < limit:
            return "%s %s" % (three_digits(count / scale), unit)
    return "%s GiB" % three_digits(count / (1 << 30))


def number(count):
    return format(round(count), ",")


def count(value):
    return three_digits(value) if value < 1000 else number(value)


def share(fraction):
    return "%.0f%%" % (100 * fraction) if fraction >= 0.0995 or fraction == 0 \
        else "%.1f%%" % (100 * fraction)


# Of the processor's counters: title, key of a pair, how it is written, whether less is better.
COUNTED = (
    ("Instructions, of an operation or a run", "instructions", count, True),
    ("Instructions per cycle", "instructions_per_cycle", three_digits, False),
    ("Misses of the first-level cache, of an operation or a run", "l1_misses", count, True),
    ("Misses of the last-level cache, of an operation or a run", "cache_misses", count, True),
    ("Misses of a simulated TLB, of an operation or a run", "tlb_misses", count, True),
    ("Share of branches predicted wrongly", "branch_miss_share", share, True))


def ratio_text(value):
    return "%.2f" % value if value < 10 else "%.0f" % value


def range_text(ratio):
    low, high = ratio_text(ratio.low), ratio_text(ratio.high)
    if low == high and ratio.low < ratio.high < 10:
        low, high = "%.3f" % ratio.low, "%.3f" % ratio.high
    return "%s–%s" % (low, high)


def compared(value, what, other=None):
    """"7% less time than X", "2.3 times the time of X" or "the same time as X"; or without X."""
    def than(word):
        return " %s %s" % (word, other) if other else ""

    if value >= 1.995:
        return "%s times the %s%s" % (("%.1f" if value < 9.95 else "%.0f") % value, what, than("of"))
    percent = 100 * abs(value - 1)
    if percent < 0.05:
        return "the same %s%s" % (what, than("as"))
    return "%s%% %s %s%s" % (("%.1f" if percent < 0.95 else "%.0f") % percent,
                             "more" if value > 1 else "less", what, than("than"))
