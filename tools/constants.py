#!/usr/bin/env python3
"""docs/constants.md: the numbers of the allocator, as its sources have them.

Usage: tools/constants.py         prints the page
       tools/constants.py --write writes it to docs/constants.md
A constant is looked up in the named file; those that it is made of, there and in
allocator/base/units.h, or in the file that IMPORTS names.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/constants.md"
UNITS = "base/units.h"
IMPORTS = {"heap/thread_heap.h": ("heap/magazine.h",)}

# (heading, [(what, file, constant)])
TABLES = [
    ("Sizes and the region", [
        ("the least alignment of a block", UNITS, "kMinAlignmentBytes"),
        ("a unit", UNITS, "kUnitBytes"),
        ("a SuperSlab", UNITS, "kSuperSlabBytes"),
        ("units in a SuperSlab", UNITS, "kUnitsPerSuperSlab"),
        ("size classes", "slab/size_class.h", "kClassCount"),
        ("size classes that are Tiny", "slab/size_class.h", "kTinyClassCount"),
        ("the largest Tiny block", "slab/size_class.h", "kMaxTinyBytes"),
        ("the largest Pool block", "slab/size_class.h", "kMaxPoolBytes"),
        ("the largest span", "ace/ace.h", "kMaxSpanBytes"),
        ("steps over foreign memory when a zone grows", "superslab/zone.cc", "kMaxSteps"),
        ("the longest such step, in SuperSlabs", "superslab/zone.cc", "kMaxStepFrames"),
    ]),
    ("ACE", [
        ("a zone grows by this share of its size: 1 in", "ace/run_store.cc", "kGrowthShare"),
        ("the longest growth step, in SuperSlabs", "ace/run_store.cc", "kMaxGrowthFrames"),
        ("the kernel's mappings for moved spans: 1 in", "ace/ace.cc", "kMovedMappingsShare"),
        ("the same for Huge blocks that stay or help out: 1 in", "ace/ace.cc", "kHugeMappingsShare"),
        ("the same for guard pages: 1 in", "ace/run_store.cc", "kMappingsShare"),
        ("gaps looked at until a Huge block goes behind all others", "ace/huge_pool.cc", "kMaxGaps"),
        ("granted before a zone asks for huge pages", "ace/run_store_huge.cc", "kLeastHugeHeapUnits"),
        ("free in the zone meanwhile, at most: 1 in", "ace/run_store_huge.cc", "kMostFreeShare"),
        ("in memory of the last SuperSlab, at least", "ace/run_store_huge.cc", "kDenseBytes"),
        ("given back between two holds of the lock", "ace/ace_state.h", "kPurgeSliceUnits"),
        ("more than is to be kept, and not worth a call", "ace/retention.h", "kIgnoredExcessUnits"),
        ("the shortest run that no slab has", "ace/retention.h", "kMidRunUnits"),
        ("the slack for long runs falls in an interval by 1 in", "ace/retention.h", "kSlackFallShare"),
    ]),
    ("Thread heaps", [
        ("a magazine", "heap/magazine.h", "kMagazineBytes"),
        ("blocks in a magazine, at most", "heap/magazine.h", "kMagazineSlots"),
        ("bytes of blocks in a magazine, at most", "heap/magazine.h", "kMagazineBudgetBytes"),
        ("the first refill, in blocks", "base/build_info.h", "kFirstRefill"),
        ("first calls of a Tiny class that look at longer classes, from the ninth heap on", "heap/thread_heap.h", "kCallsForSlab"),
        ("looks at the clock until outboxes go home", "heap/thread_heap.h", "kSendInterval"),
        ("outboxes of one owner until one goes home", "heap/thread_heap.h", "kHomeInterval"),
        ("the least block that others hand out", "heap/magazine.h", "kMinForeignBytes"),
        ("the longest span that a thread keeps", "heap/span_cache.h", "kMaxCachedUnits"),
        ("spans that a thread keeps together", "heap/span_cache.h", "kMaxCachedBytes"),
        ("spans that it keeps beside one of each length", "heap/span_cache.h", "kOthers"),
        ("allocations without a slow path until one looks at the time", "heap/allocation_count.h", "kInterval"),
        ("heaps that a trim looks after", "heap/heap_system.h", "kTrimmedHeaps"),
        ("heaps without a thread that keep what was left", "heap/heap_system.h", "kWarmHeaps"),
        ("threads awake before a thread keeps less", "heap/heap_system.h", "kUncrowded"),
        ("heaps without a thread before ACE forgets the peak", "heap/heap_system.h", "kManyLeft"),
        ("left in the magazines of a heap without a thread", "heap/thread_heap.h", "kMaxLeftBytes"),
        ("slabs granted before such a heap is emptied", "heap/thread_heap.h", "kMaxLeftSlabs"),
        ("units that a look for free pages goes through", "heap/slab_holes.cc", "kLooks"),
        ("calls of the kernel that it makes", "heap/slab_holes.cc", "kCalls"),
    ]),
    ("Core and failures", [
        ("the shortest span whose pages are moved", "core/large_blocks.h", "kMinMovedUnits"),
        ("the shortest Huge block after a shrink", "core/large_blocks.h", "kMinHugeBytes"),
        ("not wanted of a block that stays, at most", "core/large_blocks.h", "kMaxUnusedBytes"),
        ("a forked child's thread has a heap of its own for", "core/heap_of_thread.h", "kAwayMs"),
        ("calls of the failure handler for one request", "core/recovery.h", "kMaxHandlerRetries"),
        ("failure events kept", "failures/failure_ring.h", "kCapacity"),
    ]),
]


def definitions(path):
    """{constant: its expression} of a source."""
    text = re.sub(r"//[^\n]*", "", (ROOT / "allocator" / path).read_text(encoding="utf-8"))
    return dict(re.findall(r"\bconstexpr\s+[\w:]+\s+(k\w+)\s*=\s*([^;{}]*(?:\{\w+\}[^;{}]*)?);", text))


def evaluate(name, known):
    """The value of a constant, whose expression has integers, other constants and arithmetic alone."""
    if name not in known:
        raise LookupError("no constant %s; TABLES in tools/constants.py names it" % name)
    text = re.sub(r"std::\w+\{(\w+)\}", r"\1", known[name]).replace("sizeof(void*)", "8")
    text = re.sub(r"static_cast<[\w:]+>", "", text)
    text = re.sub(r"(?<=\d)(?:'(?=\d)|U\b|ULL\b)", "", re.sub(r"\b\w+::(?=k[A-Z])", "", text))
    text = re.sub(r"\bk[A-Z]\w*", lambda match: "(%d)" % evaluate(match.group(), known), text)
    if not re.fullmatch(r"[\d\s()+*/<>-]+", text):
        raise LookupError("%s is no arithmetic: %s" % (name, known[name]))
    return eval(" ".join(text.split()).replace("/", "//"))  # pylint: disable=eval-used


def shown(name, value):
    if name.endswith("Units"):
        name, value = "Bytes", value * 64 * 1024
    if name.endswith("Ms"):
        return "{:,} ms".format(value)
    if name.endswith("Bytes"):
        for word, unit in (("MiB", 1 << 20), ("KiB", 1 << 10)):
            if value >= unit and value % (unit // 4) == 0:
                return "%g %s" % (value / unit, word)
        return "%d bytes" % value
    return "{:,}".format(value)


def page():
    lines = ["# Which numbers does hakmem use?", "", "<!-- Made from the sources: tools/constants.py --write -->", "",
             "[design.md](design.md) and [keeping.md](keeping.md) say what each number does."]
    for heading, rows in TABLES:
        lines += ["", "## " + heading, "", "| what | value | constant |", "|---|--:|---|"]
        for what, path, name in rows:
            known = {}
            for source in (UNITS, *IMPORTS.get(path, ()), path):
                known.update(definitions(source))
            lines.append("| %s | %s | `%s` in [%s](../allocator/%s) |" % (what, shown(name, evaluate(name, known)), name,
                                                                       path, path))
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    elif sys.argv[1:]:
        sys.exit("usage: tools/constants.py [--write]")
    else:
        print(page(), end="")


if __name__ == "__main__":
    main()
