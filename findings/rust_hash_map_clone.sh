#!/bin/bash
# Rust's standard library (1.95.0, x86-64): the clone of a HashMap with ten elements
# takes 34 MiB, and so does the clone of an empty one.
#
# A good guess: a clone has room for what it holds, as the clone of a Vec has. Seen:
# HashMap and HashSet clone the table, with as many buckets as the original. A map that
# once held a million elements, and was then filtered with retain or emptied with clear,
# has clones of that size. A snapshot of a nearly empty map costs the map's largest size
# each time. A map that is collected from iter() has the right size.
#
# Seen: bytes that a clone took, of a map that once held a million numbers: with ten
# elements after retain 35651600, after clear 35651600, collected from the ten 288; of a
# Vec with ten after truncate 80.
#
# Needs rustc. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >clone.rs <<'RUST'
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Relaxed);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        System.dealloc(block, layout)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn took<T>(make: impl FnOnce() -> T) -> usize {
    let before = BYTES.load(Relaxed);
    let _made = make();
    BYTES.load(Relaxed) - before
}

fn main() {
    let mut vector: Vec<u64> = (0..1_000_000).collect();
    vector.truncate(10);
    let mut map: HashMap<u64, u64> = (0..1_000_000).map(|i| (i, i)).collect();
    map.retain(|key, _| *key < 10);
    let retained = took(|| map.clone());
    let collected = took(|| map.iter().map(|(k, v)| (*k, *v)).collect::<HashMap<_, _>>());
    map.clear();
    let cleared = took(|| map.clone());
    println!("{retained} {cleared} {collected} {}", took(|| vector.clone()));
}
RUST
rustc -O --edition 2021 -o clone clone.rs
read -r retained cleared collected vector < <(./clone)
echo "$(rustc --version): bytes of a clone after retain $retained, after clear $cleared," \
  "collected $collected, of a Vec $vector"
((retained > 30000000 && cleared > 30000000 && collected < 1000 && vector < 200)) ||
  { echo "not what was seen"; exit 1; }
