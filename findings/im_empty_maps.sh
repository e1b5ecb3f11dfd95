#!/bin/bash
# im 15.1.0 (crates.io, x86-64): an empty OrdMap takes 1,592 bytes, and an empty HashMap
# 824.
#
# A good guess: an empty collection allocates nothing, as all of Rust's standard library
# does, so a field with an empty map costs its few words. Seen: each map makes its root
# as soon as it is there, with room for all entries that a node can have: 64 of an
# OrdMap, 32 of a HashMap. A tree of objects with a map each, mostly empty, takes
# hundreds of times what it takes with std's maps. im's Vector allocates nothing while
# it is small.
#
# Seen: bytes of maps from u64 to u64, empty and with one entry: im::OrdMap 1592 1592,
# im::HashMap 824 824, std BTreeMap 0 192, std HashMap 0 84.
#
# Needs cargo. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "empty"
version = "0.1.0"
edition = "2021"
[dependencies]
im = "=15.1.0"
TOML
cat >src/main.rs <<'RUST'
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
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
static GLOBAL: Counting = Counting;

macro_rules! show {
    ($map:ty) => {
        let start = LIVE.load(Relaxed);
        let mut map = <$map>::new();
        let empty = LIVE.load(Relaxed) - start;
        map.insert(1, 1);
        print!("{empty} {} ", LIVE.load(Relaxed) - start);
    };
}

fn main() {
    print!(" "); // this makes the buffer of the output
    show!(im::OrdMap<u64, u64>);
    show!(im::HashMap<u64, u64>);
    show!(std::collections::BTreeMap<u64, u64>);
    show!(std::collections::HashMap<u64, u64>);
}
RUST
read -r sorted sorted_one hash hash_one tree tree_one table table_one \
  <<<"$(cargo run -q --release)"
echo "bytes empty and with one entry: im::OrdMap $sorted $sorted_one, im::HashMap" \
  "$hash $hash_one, BTreeMap $tree $tree_one, HashMap $table" \
  "$table_one"
((sorted > 1500 && sorted_one == sorted && hash > 800 && tree == 0)) &&
  ((table == 0 && tree_one < 300 && table_one < 200)) ||
  { echo "not what was seen"; exit 1; }
