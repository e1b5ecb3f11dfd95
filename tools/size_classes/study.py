#!/usr/bin/python3
"""What size classes and lengths of slabs cost on the recorded traces.

Usage: study.py [TRACE.xz…]      (default: benchmarks/traces/*.trace.xz)

Prints tables in Markdown. Time is counted in events. For each scheme:
  slack       bytes of blocks over bytes asked for, less 1: of what is alive, on
              average over time; and of all that was ever allocated
  held        slabs that are not empty, on average over time, in MiB
  touched     pages of these slabs up to the highest block used since the slab
              was empty: what is resident if memory goes back at once
  partly      slabs neither empty nor full, on average over time
  in use      pairs of a thread and a class that it ever allocated: each has a
              magazine and a slab of its own
Each slab hands out its lowest free block, lowest slab first; threads have slabs
of their own. Magazines and what is kept for later are no part of this, nor are
blocks above 64 KiB.
"""
import collections
import heapq
import lzma
import pathlib
import sys

import schemes

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = 4096
ALIGNED, REALLOC, FREE = 2, 3, 4
Result = collections.namedtuple("Result", "classes slack slack_by_count held touched partly in_use")


class BadTrace(Exception):
    pass


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def decode(data):
    """[(op, thread, block, size)] of a trace; its format is in trace_format.h."""
    if data[:8] != b"HAKTRACE":
        raise BadTrace("not a trace")
    at, header = 16, []
    for _ in range(4):
        value, at = read_varint(data, at)
        header.append(value)
    if header[0] != 1:
        raise BadTrace("version %d is not known" % header[0])
    events, thread = [], 0
    for _ in range(header[3]):
        first = data[at]
        at += 1
        op, size = first & 7, 0
        if first & 8:
            thread, at = read_varint(data, at)
        block, at = read_varint(data, at)
        if op != FREE:
            size, at = read_varint(data, at)
        if op == ALIGNED:
            log2, at = read_varint(data, at)
            # The class whose blocks are so aligned is not smaller than this.
            size = -(-size >> log2) << log2
        events.append((op, thread, block, size))
    return events


class Slabs:
    """The slabs of one class and one thread."""

    def __init__(self, size, units, totals):
        self.size, self.bytes = size, units * schemes.UNIT
        self.capacity = self.bytes // size
        self.free, self.bump = [], 0
        self.live, self.high = [], []  # of each slab: blocks alive, blocks touched
        self.totals = totals

    def pages(self, slab):
        return -(-self.high[slab] * self.size // PAGE)

    def allocate(self):
        if self.free:
            slot = heapq.heappop(self.free)
        else:
            slot = self.bump
            self.bump += 1
        slab, index = divmod(slot, self.capacity)
        if slab == len(self.live):
            self.live.append(0)
            self.high.append(0)
        totals, live = self.totals, self.live[slab] + 1
        self.live[slab] = live
        totals.held += self.bytes * (live == 1)
        totals.partly += (live == 1) - (live == self.capacity)
        if index >= self.high[slab]:
            before = self.pages(slab)
            self.high[slab] = index + 1
            totals.touched += self.pages(slab) - before
        return slot

    def release(self, slot):
        slab = slot // self.capacity
        totals, live = self.totals, self.live[slab] - 1
        self.live[slab] = live
        totals.partly += (live == self.capacity - 1) - (live == 0)
        if live == 0:
            totals.held -= self.bytes
            totals.touched -= self.pages(slab)
            self.high[slab] = 0
        heapq.heappush(self.free, slot)


class Totals:
    """What is alive now, and its sums over time."""

    def __init__(self):
        self.asked = self.blocks = self.held = self.touched = self.partly = 0
        self.sums = [0] * 5

    def tick(self):
        now = self.asked, self.blocks, self.held, self.touched, self.partly
        self.sums = [total + value for total, value in zip(self.sums, now)]


def simulate(events, sizes, units=schemes.units_now):
    """The Result of a scheme on a trace."""
    table = schemes.class_table(sizes)
    totals, slabs, alive = Totals(), {}, {}
    asked_ever = given_ever = 0  # realloc in place is no allocation

    def release(block):
        place = alive.pop(block, None)
        if place is not None:
            owner, slot, size = place
            owner.release(slot)
            totals.asked -= size
            totals.blocks -= owner.size

    for op, thread, block, size in events:
        if op == FREE or size > schemes.MAX_BYTES:
            release(block)
        else:
            number = table[(size + 15) // 16]
            old = alive.get(block)
            if op == REALLOC and old is not None and old[0].size == sizes[number]:
                alive[block] = old[0], old[1], size
                totals.asked += size - old[2]
            else:
                key = thread, number
                if key not in slabs:
                    slabs[key] = Slabs(sizes[number], units(sizes[number]), totals)
                owner = slabs[key]
                slot = owner.allocate()
                if old is not None:
                    release(block)
                alive[block] = owner, slot, size
                totals.asked += size
                totals.blocks += owner.size
                asked_ever += size
                given_ever += owner.size
        totals.tick()
    asked, blocks, held, touched, partly = (value / max(len(events), 1) for value in totals.sums)
    return Result(len(sizes), blocks / asked - 1, given_ever / asked_ever - 1, held / 2**20,
                  touched * PAGE / 2**20, partly, len(slabs))


def print_table(title, first, rows):
    print("\n### %s\n" % title)
    print("| %s | classes | slack, alive | slack, allocated | held MiB | touched MiB | partly | in use |" % first)
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for name, row in rows:
        print("| %s | %d | %.1f%% | %.1f%% | %.2f | %.2f | %.0f | %d |" % (
            name, row.classes, 100 * row.slack, 100 * row.slack_by_count, row.held, row.touched,
            row.partly, row.in_use))


def print_tails():
    print("\n### The end of a slab that no block covers, by units\n")
    print("| block | 1 | 4 | 16 | blocks of 1 | now |\n|--:|--:|--:|--:|--:|--:|")
    for size in schemes.by_doubling(4):
        if size > 128:
            print("| %d | %s | %d | %d |" % (
                size, " | ".join("%.1f%%" % (100 * schemes.tail(size, units)) for units in (1, 4, 16)),
                schemes.UNIT // size, schemes.units_now(size)))


def main(arguments):
    if any(argument.startswith("-") for argument in arguments):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    paths = [pathlib.Path(argument) for argument in arguments]
    now = schemes.SCHEMES[next(iter(schemes.SCHEMES))]
    for path in paths or sorted((ROOT / "benchmarks/traces").glob("*.trace.xz")):
        try:
            events = decode(lzma.decompress(path.read_bytes()))
        except (OSError, lzma.LZMAError, BadTrace, IndexError) as error:
            print("%s: %s" % (path, error or "cut short"), file=sys.stderr)
            return 2
        print_table(path.name, "classes", [
            (name, simulate(events, sizes)) for name, sizes in schemes.SCHEMES.items()])
        print_table(path.name + ", lengths of slabs", "units", [
            (name, simulate(events, now, rule)) for name, rule in schemes.SLAB_RULES.items()])
        sys.stdout.flush()
    print_tails()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
