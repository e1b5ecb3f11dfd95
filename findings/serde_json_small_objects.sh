#!/bin/bash
# serde_json 1.0.140 (crates.io): the object {"id":1}, eight letters, takes 675 bytes.
#
# A good guess: an object with one member takes a name, a value of 32 bytes and some
# bytes for the map. So a list of 100,000 records takes a few times its text. Seen: the
# map is a B-tree whose first node has room for eleven members from the start, and the
# memory of it is 632 bytes. A list of small objects takes seventy times its text. The
# feature preserve_order, which sounds as if it cost more, has another map, and takes a
# third less.
#
# Seen: bytes in memory for each of 100,000 objects {"id":1}: 675, with preserve_order
# 460; letters of the text for each 9.
#
# Needs cargo. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "objects"
version = "0.1.0"
edition = "2021"
[dependencies]
serde_json = "=1.0.140"
indexmap = { version = "=2.7.1", optional = true }
hashbrown = { version = "=0.15.2", optional = true }
[features]
order = ["serde_json/preserve_order", "indexmap", "hashbrown"]
TOML
cat >src/main.rs <<'RUST'
use std::alloc::{GlobalAlloc, Layout, System};
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

const COUNT: usize = 100_000;

fn main() {
    let text = format!("[{}]", vec![r#"{"id":1}"#; COUNT].join(","));
    let before = LIVE.load(Relaxed);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    println!("{} {}", text.len() / COUNT, (LIVE.load(Relaxed) - before) / COUNT);
    drop(value);
}
RUST
read -r letters bytes < <(cargo run -q --release)
read -r _ ordered < <(cargo run -q --release --features order)
echo "bytes for each object of $letters letters: $bytes, with preserve_order $ordered"
((letters == 9 && bytes > 600 && bytes < 800 && ordered < 550)) ||
  { echo "not what was seen"; exit 1; }
