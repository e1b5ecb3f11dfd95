#!/bin/bash
# Rust 1.95 (x86-64-unknown-linux-gnu): an array of elements that are aligned to 32 bytes
# costs all its zeros at once, and is copied when it grows.
#
# A good guess: the system's allocator gives large zeroed arrays without touching them,
# and moves one that grows by its pages, whatever its elements are. Seen: that is so up
# to an alignment of 16. From 32 on, as vectors of AVX and counters padded to cache lines
# have, Rust takes aligned memory, for which C has neither a calloc nor a realloc. It
# writes each zero, and a growth is a new block, a copy and a free. A sparse table of
# padded counters takes all its memory, and a large Vec is there twice when it grows.
#
# Seen: MiB in memory after 256 MiB by alloc_zeroed with an alignment of 8 0, 16 0, 32
# 256, 64 256; pages faulted to grow a Vec of 256 MiB by 1 MiB, elements aligned to 16
# 1, to 32 65537.
#
# Needs rustc, 520 MiB of memory. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >aligned.rs <<'RUST'
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::hint::black_box;

const MIB: usize = 1 << 20;

#[derive(Clone)]
#[repr(align(16))]
struct Sixteen(#[allow(dead_code)] [u8; 16]);

#[derive(Clone)]
#[repr(align(32))]
struct ThirtyTwo(#[allow(dead_code)] [u8; 32]);

fn field(file: &str, index: usize) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    text.split(' ').nth(index).unwrap().parse().unwrap()
}

fn mib_of_zeros(alignment: usize) -> usize {
    let layout = Layout::from_size_align(256 * MIB, alignment).unwrap();
    let before = field("/proc/self/statm", 1);
    let zeros = black_box(unsafe { alloc_zeroed(layout) });
    let after = field("/proc/self/statm", 1);
    unsafe { dealloc(zeros, layout) };
    (after - before) * 4096 / MIB
}

fn faults_of_growth<T: Clone>(element: T) -> usize {
    let length = 256 * MIB / std::mem::size_of::<T>();
    let mut array = vec![element; length];
    let before = field("/proc/self/stat", 9);
    array.reserve_exact(length / 256);
    let after = field("/proc/self/stat", 9);
    black_box(&array);
    after - before
}

fn main() {
    for alignment in [8, 16, 32, 64] {
        print!("{} ", mib_of_zeros(alignment));
    }
    print!("{} ", faults_of_growth(Sixteen([1; 16])));
    println!("{}", faults_of_growth(ThirtyTwo([1; 32])));
}
RUST
rustc -O -o aligned aligned.rs
seen=$(env -u LD_PRELOAD -u GLIBC_TUNABLES ./aligned)
echo "MiB of zeros aligned to 8, 16, 32, 64, faults of growths aligned to 16 and 32: $seen"
read -r -a got <<<"$seen"
((got[0] < 5 && got[1] < 5 && got[2] > 250 && got[3] > 250)) &&
  ((got[4] < 1000 && got[5] > 60000)) || { echo "not what was seen"; exit 1; }
