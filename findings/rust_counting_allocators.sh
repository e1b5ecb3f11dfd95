#!/bin/bash
# dhat 0.3.3 and peak_alloc 0.2.1 (crates.io): to measure a Rust program with them
# makes it use memory that it did not use.
#
# A good guess: a counting allocator passes each call to the system's and adds a
# number. Seen: a GlobalAlloc that does not pass alloc_zeroed on gets the trait's
# own, which is alloc and a memset. A vector of zeros, that calloc gives without
# touching a page, is then in memory as a whole. The crates stats_alloc 0.1.10 and
# cap 0.1.2 pass it on. All four count the same 256 MiB, so only one who looks at
# the process sees it.
#
# Seen: MiB in memory with vec![0u8; 256 MiB]: system 1, stats_alloc 1, cap 1,
# dhat 257, peak_alloc 257.
#
# Needs cargo. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "zeros"
version = "0.1.0"
edition = "2021"
[dependencies]
cap = { version = "=0.1.2", optional = true }
dhat = { version = "=0.3.3", optional = true }
peak_alloc = { version = "=0.2.1", optional = true }
stats_alloc = { version = "=0.1.10", optional = true }
TOML
cat >src/main.rs <<'RUST'
#[cfg(any(feature = "cap", feature = "stats_alloc"))]
use std::alloc::System;

#[cfg(feature = "cap")]
#[global_allocator]
static COUNTER: cap::Cap<System> = cap::Cap::new(System, usize::MAX);
#[cfg(feature = "dhat")]
#[global_allocator]
static COUNTER: dhat::Alloc = dhat::Alloc;
#[cfg(feature = "peak_alloc")]
#[global_allocator]
static COUNTER: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;
#[cfg(feature = "stats_alloc")]
#[global_allocator]
static COUNTER: &stats_alloc::StatsAlloc<System> = &stats_alloc::INSTRUMENTED_SYSTEM;

fn main() {
    let zeros = std::hint::black_box(vec![0u8; 256 << 20]);
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    println!("{}", pages * 4096 >> 20);
    std::hint::black_box(&zeros);
}
RUST
touched=
for counter in "" stats_alloc cap dhat peak_alloc; do
  mib=$(cargo run -q --release --features "$counter" 2>/dev/null)
  echo "MiB in memory, ${counter:-system}: $mib"
  touched+=$((mib > 200))
done
[[ $touched == 00011 ]] || { echo "not what was seen"; exit 1; }
