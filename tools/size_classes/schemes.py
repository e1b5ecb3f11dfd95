"""Size classes: hakmem's, others' and what might replace hakmem's.

A scheme is an ascending list of block sizes up to 64 KiB, all multiples of 16
since that is the alignment of every block here. Facts about others:
  jemalloc    include/jemalloc/internal/sc.h: quantum 16, four per doubling
  mimalloc    src/init.c, MI_PAGE_QUEUES_EMPTY: words of 8 bytes, four per doubling from 64
  snmalloc    src/snmalloc/ds_core/mitigations.h and sizeclasstable.h: four per doubling
  rpmalloc    rpmalloc/rpmalloc.c 1.4: by 16 to 1,024, by 512 to 32,256, then by its 64 KiB spans
  tcmalloc    google/tcmalloc, tcmalloc/size_classes.cc: pages of 8 KiB, 16-byte alignment
In multiples of 16 the first three are the same as hakmem's.
"""

UNIT = 64 * 1024
MAX_BYTES = 64 * 1024
# Header codes have six bits, of which four values are taken.
MAX_CLASSES = 61
ALIGNMENT = 16
# Pool's header granule: its classes are multiples of it.
POOL_GRANULE = 256
MAX_TINY = 1024

TCMALLOC = [
    16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 272, 288, 304, 320,
    336, 352, 368, 384, 400, 416, 448, 480, 512, 576, 640, 704, 768, 896, 1024, 1152, 1280, 1408,
    1536, 1792, 2048, 2304, 2688, 2816, 3200, 3456, 3584, 4096, 4736, 5376, 6144, 6528, 6784, 7168,
    8192, 9472, 10240, 12288, 13568, 14336, 16384, 20480, 24576, 28672, 32768, 40960, 49152, 57344,
    65536]


def by_doubling(per_doubling, fine_to=128, granule=None):
    """By 16 to `fine_to`, then `per_doubling` sizes between a power of two and the next.

    With `granule`, sizes above 1 KiB are multiples of it.
    """
    sizes = list(range(ALIGNMENT, fine_to + 1, ALIGNMENT))
    power = ALIGNMENT
    while power < MAX_BYTES:
        for step in range(1, per_doubling + 1):
            size = power + power * step // per_doubling
            fits = size % ALIGNMENT == 0 and (size <= MAX_TINY or size % (granule or 1) == 0)
            if size > sizes[-1] and fits:
                sizes.append(size)
        power *= 2
    return sizes


def finer(*ranges):
    """hakmem's, with eight sizes per doubling in these ranges."""
    eight = [size for size in by_doubling(8)
             if any(first < size <= last for first, last in ranges)]
    return sorted(set(by_doubling(4)) | set(eight))


KIB = 1024
SCHEMES = {
    "hakmem, jemalloc, mimalloc, snmalloc": by_doubling(4),
    "2 per doubling": by_doubling(2),
    "8 per doubling": by_doubling(8, granule=POOL_GRANULE),
    "16 per doubling": by_doubling(16, granule=POOL_GRANULE),
    "by 16 to 256, then 4": by_doubling(4, fine_to=256),
    "by 16 to 512, then 4": by_doubling(4, fine_to=512),
    "by 16 to 1,024, then 4": by_doubling(4, fine_to=1024),
    "8 per doubling from 4 to 8 KiB": finer((4 * KIB, 8 * KIB)),
    "8 per doubling from 2 to 16 KiB": finer((2 * KIB, 16 * KIB)),
    "8 per doubling from 256 to 512 and from 2 to 16 KiB": finer((256, 512), (2 * KIB, 16 * KIB)),
    "tcmalloc": TCMALLOC,
    "rpmalloc 1.4": list(range(16, 1025, 16)) + list(range(1536, 32257, 512)) + [MAX_BYTES],
}


def class_table(sizes):
    """Entry i: the class of a request of 16 * (i - 1) + 1 to 16 * i bytes."""
    table, number = [], 0
    for request in range(0, MAX_BYTES + 1, ALIGNMENT):
        while sizes[number] < request:
            number += 1
        table.append(number)
    return table


def units_now(size):
    """Units of a slab in allocator/slab/size_class.h."""
    if size <= 4 * 1024:
        return 1
    return 4 if size <= 16 * 1024 else 16


# Rules for the length of a slab, in units; hakmem's runs have 1, 4 or 16.
SLAB_RULES = {
    "1 to 4 KiB, 4 to 16 KiB, 16 above (now)": units_now,
    "1 to 2 KiB, 4 to 8 KiB, 16 above": lambda size: 1 if size <= 2048 else 4 if size <= 8192 else 16,
    "1 to 8 KiB, 4 to 32 KiB, 16 above": lambda size: 1 if size <= 8192 else 4 if size <= 32768 else 16,
    "1 to 16 KiB, 4 above": lambda size: 1 if size <= 16384 else 4,
    "4 to 16 KiB, 16 above": lambda size: 4 if size <= 16384 else 16,
}


def tail(size, units):
    """The part of a slab that no block covers."""
    return units * UNIT % size / (units * UNIT)
