#!/bin/bash
# Zig 0.15.1 (PyPI ziglang, x86-64-linux-gnu): std.heap.c_allocator calls neither malloc
# nor realloc.
#
# A good guess: the allocator "of C" is malloc, realloc and free, so a list that grows is
# grown by realloc, in place or by its pages, and a number of 8 bytes is a small malloc.
# Seen: each block is asked for by posix_memalign, whatever its alignment. A growth looks
# whether malloc_usable_size has the room, and else takes a new block, copies and frees.
# So an allocator's realloc is of no use to a Zig program, nor is a cache that malloc
# alone takes from. A profiler that does not see posix_memalign sees nothing of it.
# std.heap.raw_c_allocator is malloc and realloc.
#
# Seen: calls of malloc, realloc and posix_memalign for 1,000 numbers and a list that
# grows to 64 MiB by a MiB each time: c_allocator 0 0 1064, raw_c_allocator 1001 63 0;
# pages faulted by the growths: 532544 and 16385.
#
# Needs gcc, python3 with pip (for the package's files, 94 MB), 130 MiB of memory. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip download -q --no-deps --only-binary :all: --disable-pip-version-check \
  --platform manylinux2010_x86_64 ziglang==0.15.1
python3 -m zipfile -e ziglang*.whl package
chmod +x package/ziglang/zig
export ZIG_GLOBAL_CACHE_DIR=$PWD/global ZIG_LOCAL_CACHE_DIR=$PWD/local
cat >list.zig <<'ZIG'
const std = @import("std");

fn faults() usize {
    return @intCast(std.posix.getrusage(std.posix.rusage.SELF).minflt);
}

fn run(allocator: std.mem.Allocator) !void {
    for (0..1000) |_| _ = try allocator.create(u64);
    var list: std.ArrayList(u8) = .empty;
    const before = faults();
    for (0..64) |_| {
        const old = list.items.len;
        try list.ensureTotalCapacityPrecise(allocator, old + (1 << 20));
        list.items.len = old + (1 << 20);
        @memset(list.items[old..], 1);
    }
    std.debug.print("{d} ", .{faults() - before});
}

pub fn main() !void {
    const raw = std.os.argv.len > 1;
    try run(if (raw) std.heap.raw_c_allocator else std.heap.c_allocator);
}
ZIG
cat >count.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

static int mallocs, reallocs, aligned;

void* malloc(size_t size) {
  static void* (*next)(size_t);
  if (next == NULL) next = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  ++mallocs;
  return next(size);
}

void* realloc(void* block, size_t size) {
  static void* (*next)(void*, size_t);
  if (next == NULL) next = (void* (*)(void*, size_t))dlsym(RTLD_NEXT, "realloc");
  ++reallocs;
  return next(block, size);
}

int posix_memalign(void** block, size_t alignment, size_t size) {
  static int (*next)(void**, size_t, size_t);
  if (next == NULL) {
    next = (int (*)(void**, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
  }
  ++aligned;
  return next(block, alignment, size);
}

__attribute__((destructor)) static void Show(void) {
  dprintf(2, "%d %d %d ", mallocs, reallocs, aligned);
}
C
gcc -O1 -fPIC -shared -o count.so count.c
package/ziglang/zig build-exe -O ReleaseSmall -lc -target x86_64-linux-gnu.2.36 list.zig
unset GLIBC_TUNABLES
plain=$(LD_PRELOAD=./count.so ./list 2>&1)
raw=$(LD_PRELOAD=./count.so ./list raw 2>&1)
echo "faults of growth, calls of malloc, realloc, posix_memalign: c_allocator $plain," \
  "raw_c_allocator $raw"
read -r faults mallocs reallocs aligned <<<"$plain"
((faults > 200000 && mallocs == 0 && reallocs == 0 && aligned == 1064)) ||
  { echo "not what was seen"; exit 1; }
read -r faults mallocs reallocs aligned <<<"$raw"
((faults < 30000 && mallocs == 1001 && reallocs == 63 && aligned == 0)) ||
  { echo "not what was seen"; exit 1; }
