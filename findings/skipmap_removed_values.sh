#!/bin/bash
# crossbeam-skiplist 0.1.3 with crossbeam-epoch 0.9.18 (crates.io): values that were
# removed from a map stay, and outlive the map.
#
# A good guess: a lock-free map frees what was removed a little later, when no thread
# can still look at it; one thread alone, or the drop of the whole map, leaves
# nothing behind. Seen: the thread collects what is to be freed in a bag of 64, and
# only a full bag goes on its way. So the last removed values stay as long as their
# thread, whatever else the thread does with the map. They are not the map's, so to
# drop the map does not free them. crossbeam_epoch::pin().flush(), of a crate that
# the program need not name, frees them.
#
# Seen: values of 1 MiB that are alive: 60 removed of 60, the map empty: 60; after
# 100,000 look-ups 60; after 200 more came and were removed 132; after the map was
# dropped 132; after five flushes 0.
#
# Needs cargo. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "removed"
version = "0.1.0"
edition = "2021"
[dependencies]
crossbeam-epoch = "=0.9.18"
crossbeam-skiplist = "=0.1.3"
crossbeam-utils = "=0.8.21"
TOML
cat >src/main.rs <<'RUST'
use crossbeam_skiplist::SkipMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

static ALIVE: AtomicUsize = AtomicUsize::new(0);

struct Value(#[allow(dead_code)] Vec<u8>);

impl Value {
    fn new() -> Value {
        ALIVE.fetch_add(1, SeqCst);
        Value(vec![1; 1 << 20])
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, SeqCst);
    }
}

fn show() {
    print!("{} ", ALIVE.load(SeqCst));
}

fn come_and_go(map: &SkipMap<usize, Value>, count: usize) {
    for key in 0..count {
        map.insert(key, Value::new());
    }
    for key in 0..count {
        map.remove(&key);
    }
    assert!(map.is_empty());
}

fn main() {
    let map = SkipMap::new();
    come_and_go(&map, 60);
    show();
    for key in 0..100_000 {
        assert!(map.get(&key).is_none());
    }
    show();
    come_and_go(&map, 200);
    show();
    drop(map);
    show();
    for _ in 0..5 {
        crossbeam_epoch::pin().flush();
    }
    show();
}
RUST
seen=$(cargo run -q --release)
echo "MiB alive: removed, after look-ups, more removed, map dropped, flushed: $seen"
read -r removed looked more dropped flushed <<<"$seen"
((removed == 60 && looked == 60 && more > 60 && dropped > 60 && flushed == 0)) ||
  { echo "not what was seen"; exit 1; }
