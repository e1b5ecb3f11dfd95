#!/bin/bash
# aho-corasick 1.1.3 (crates.io, x86-64): a searcher for 101 words takes a tenth of the
# memory of one for 100.
#
# A good guess: the memory of a searcher grows with its words, so a list that is cut to
# 100 words is smaller than the whole. Seen: AhoCorasick::new makes a table of every
# state and byte for up to 100 words, and lists of transitions for more. The table takes
# about 1,200 bytes for a word of these here, and the lists 120, so a searcher for 1,000
# words is smaller than one for 100. The builder's kind() chooses.
#
# Seen: bytes by memory_usage for words of 26 letters: 99 121,056 (DFA), 100 122,240
# (DFA), 101 12,800 (ContiguousNFA), 1,000 119,444 (ContiguousNFA); live bytes of malloc
# the same, but for some thousand.
#
# Needs cargo. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "patterns"
version = "0.1.0"
edition = "2021"
[dependencies]
aho-corasick = "=1.1.3"
TOML
cat >src/main.rs <<'RUST'
use aho_corasick::AhoCorasick;
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
static ALLOCATOR: Counting = Counting;

fn main() {
    for count in [99, 100, 101, 1000] {
        let words: Vec<String> =
            (0..count).map(|i| format!("error-number-{i:05}-of-many")).collect();
        let before = LIVE.load(Relaxed);
        let searcher = AhoCorasick::new(&words).unwrap();
        let live = LIVE.load(Relaxed) - before;
        print!("{} {live} {:?} ", searcher.memory_usage(), searcher.kind());
    }
    println!();
}
RUST
read -r few few_live few_kind most most_live most_kind more more_live more_kind \
  many many_live many_kind < <(cargo run -q --release)
echo "bytes told (and live) of a searcher for 99 words $few ($few_live) $few_kind," \
  "100 $most ($most_live) $most_kind, 101 $more ($more_live) $more_kind, 1,000 $many" \
  "($many_live) $many_kind"
((few < most && most > 8 * more && many < most && most_live > 8 * more_live)) &&
  [[ "$most_kind $more_kind" == "DFA ContiguousNFA" ]] ||
  { echo "not what was seen"; exit 1; }
