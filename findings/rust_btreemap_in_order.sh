#!/bin/bash
# Rust's standard library (1.95.0, x86-64): a BTreeMap that is filled in order is the
# largest of all, nearly twice as large as the same by collect.
#
# A good guess: keys that come in order are the best that can happen to a B-tree: each
# node is filled and then the next, as databases do for a load in order. So insert in a
# loop and collect give the same tree. Seen: a full node of 11 is split near its middle,
# wherever the new key goes. Keys in order never come back to the nodes behind, so each
# stays half empty. Mixed keys fill the nodes better, and collect, which sorts first and
# builds from below, fills them all. extend inserts one by one, and clone copies the
# half empty nodes.
#
# Seen: bytes for 1,000,000 pairs of u64: insert in order 34284960, in falling order
# 34284960, mixed 26858208, extend 34284960, clone of the first 34284960, collect
# 18182880.
#
# Needs rustc. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >order.rs <<'RUST'
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counter;
static LIVE: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size(), Relaxed);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        System.dealloc(block, layout)
    }
}

#[global_allocator]
static COUNTER: Counter = Counter;

const COUNT: u64 = 1_000_000;
type Map = BTreeMap<u64, u64>;

fn show(make: impl Fn() -> Map) -> Map {
    let before = LIVE.load(Relaxed);
    let map = make();
    assert_eq!(map.len() as u64, COUNT);
    print!("{} ", LIVE.load(Relaxed) - before);
    map
}

fn insert(key: impl Fn(u64) -> u64) -> Map {
    let mut map = Map::new();
    for i in 0..COUNT {
        map.insert(key(i), i);
    }
    map
}

fn main() {
    let first = show(|| insert(|i| i));
    show(|| insert(|i| COUNT - i));
    show(|| insert(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)));
    show(|| {
        let mut map = Map::new();
        map.extend((0..COUNT).map(|i| (i, i)));
        map
    });
    show(|| first.clone());
    show(|| (0..COUNT).map(|i| (i, i)).collect());
    println!();
}
RUST
rustc -O --edition 2021 -o order order.rs
read -r rising falling mixed extend clone collect < <(./order)
echo "bytes ($(rustc --version)): insert in order $rising, falling $falling, mixed" \
  "$mixed, extend $extend, clone $clone, collect $collect"
((rising == falling && rising == extend && rising == clone)) &&
  ((rising * 10 > collect * 18 && mixed * 10 < rising * 9 && mixed > collect)) ||
  { echo "not what was seen"; exit 1; }
