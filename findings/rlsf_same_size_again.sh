#!/bin/bash
# rlsf 0.2.1 (crates.io, x86-64): of a full pool no block of 4 KiB that is freed can be
# had again by a request of the same size.
#
# A good guess: TLSF finds a free block that is large enough in constant time, so a
# request fits into what a block of its size has just left. Seen: free blocks lie in
# lists by ranges of size, and a request looks only in lists where each block is large
# enough. A freed block that is not the first of its range lies one list below the one
# that its own size asks for. So blocks freed one by one between others stay out of use
# until a neighbour is freed, too. With 16 bytes less than a power of two, for the
# header, each one is found, and so is each of a small size.
#
# Seen: every second block of a full pool freed, and asked for again at once, in a pool
# with 32 lists for each doubling: found of 1,000 bytes 1000 of 1000, of 4,096 0 of
# 1000, of 1,000,000 0 of 33, of 4,080 1000 of 1000.
#
# Needs cargo. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "again"
version = "0.1.0"
edition = "2021"
[dependencies]
rlsf = "=0.2.1"
TOML
cat >src/main.rs <<'RUST'
use rlsf::Tlsf;
use std::alloc::Layout;
use std::mem::MaybeUninit;

fn main() {
    for size in [1000, 4096, 1_000_000, 4080] {
        let mut memory = vec![MaybeUninit::<u8>::uninit(); 64 << 20].into_boxed_slice();
        let mut pool: Tlsf<'_, u32, u32, 28, 32> = Tlsf::new();
        pool.insert_free_block(&mut memory);
        let layout = Layout::from_size_align(size, 8).unwrap();
        let mut blocks = Vec::new();
        while let Some(block) = pool.allocate(layout) {
            blocks.push(block);
        }
        let tries = (blocks.len() / 2).min(1000);
        let mut found = 0;
        for block in blocks.iter().step_by(2).take(tries) {
            unsafe { pool.deallocate(*block, 8) };
            found += pool.allocate(layout).is_some() as usize;
        }
        print!("{size} {found}/{tries} ");
    }
}
RUST
seen=$(cargo run -q --release)
echo "found again of those freed, by size: $seen"
[[ $seen == "1000 1000/1000 4096 0/1000 1000000 0/33 4080 1000/1000 " ]] ||
  { echo "not what was seen"; exit 1; }
