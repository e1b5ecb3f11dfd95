#!/bin/bash
# dlmalloc 0.2.8 (crates.io, x86-64): 100 bytes keep 256 MiB that were freed, and a large
# block that grows is copied.
#
# A good guess: the crate is Doug Lea's dlmalloc, which maps blocks from 256 KiB up each
# by itself, gives them back at their free, and grows them by mremap. Seen: the port has
# no such mappings. A large block is cut from the same row of memory as all others. It
# goes back only if it lies last, so a small block behind it keeps all of it for good.
# Memory free in the middle is never given back. A growth copies. The crate is the
# allocator of Rust for WebAssembly, where nothing can be given back. As a global
# allocator on Linux it keeps a program at its peak.
#
# Seen: MiB that stay of 256 freed, alone and with 100 bytes taken behind: dlmalloc 0
# 256, the system's 0 0; pages faulted to grow 64 MiB by 1 MiB: dlmalloc 16388, the
# system's 1.
#
# Needs cargo, 260 MiB of memory. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "large"
version = "0.1.0"
edition = "2021"
[dependencies]
dlmalloc = { version = "=0.2.8", features = ["global"] }
TOML
cat >src/main.rs <<'RUST'
use dlmalloc::GlobalDlmalloc;
use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;

const MIB: usize = 1 << 20;

fn field(file: &str, index: usize) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    text.split(' ').nth(index).unwrap().parse().unwrap()
}

fn resident() -> usize {
    field("/proc/self/statm", 1) * 4096 / MIB
}

fn touched(allocator: &dyn GlobalAlloc, layout: Layout) -> *mut u8 {
    let block = black_box(unsafe { allocator.alloc(layout) });
    unsafe { std::ptr::write_bytes(block, 1, layout.size()) };
    block
}

fn kept(allocator: &dyn GlobalAlloc, behind: bool) -> usize {
    let before = resident();
    let layout = Layout::from_size_align(256 * MIB, 16).unwrap();
    let block = touched(allocator, layout);
    if behind {
        touched(allocator, Layout::from_size_align(100, 16).unwrap());
    }
    unsafe { allocator.dealloc(block, layout) };
    resident().saturating_sub(before)
}

fn growth(allocator: &dyn GlobalAlloc) -> usize {
    let layout = Layout::from_size_align(64 * MIB, 16).unwrap();
    let block = touched(allocator, layout);
    let before = field("/proc/self/stat", 9);
    black_box(unsafe { allocator.realloc(block, layout, 65 * MIB) });
    field("/proc/self/stat", 9) - before
}

// Arguments: "system" or not, then the case.
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let system = arguments[1] == "system";
    let allocator: &dyn GlobalAlloc = if system { &System } else { &GlobalDlmalloc };
    let figure = match arguments[2].as_str() {
        "growth" => growth(allocator),
        case => kept(allocator, case == "behind"),
    };
    print!("{figure} ");
}
RUST
cargo build -q --release
seen=
for allocator in dlmalloc system; do
  for case in alone behind growth; do
    seen+=$(env -u LD_PRELOAD -u GLIBC_TUNABLES target/release/large $allocator $case)
  done
done
echo "MiB kept alone and with a small block behind, faults of a growth: dlmalloc, then the" \
  "system's: $seen"
read -r -a got <<<"$seen"
((got[0] < 5 && got[1] > 250 && got[2] > 16000)) &&
  ((got[3] < 5 && got[4] < 5 && got[5] < 1000)) || { echo "not what was seen"; exit 1; }
