#!/bin/bash
# bumpalo 3.16.0 (crates.io): the last block of an arena moves each time that it grows.
#
# A good guess: a bump arena grows its last block in place, by moving its own end, so a
# vector that is filled alone in an arena stays where it is and copies nothing. Seen:
# bumpalo gives addresses downwards. A block that grows gets the room before it, and all
# of it is moved there, by memmove. Memory is not lost, but the copies are those of a
# plain vector. Blocks that are read in the order in which they were made are read
# backwards.
#
# Seen: the second block lies before the first; a vector of a million numbers, alone in
# an arena with room: 20 growths, 20 moves, 8 MiB used.
#
# Needs cargo. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "arena"
version = "0.1.0"
edition = "2021"
[dependencies]
bumpalo = { version = "=3.16.0", features = ["collections"] }
TOML
cat >src/main.rs <<'RUST'
use bumpalo::{collections::Vec, Bump};

fn main() {
    let pair = Bump::new();
    let first = pair.alloc(1u64) as *const u64;
    let second = pair.alloc(2u64) as *const u64;
    let arena = Bump::with_capacity(64 << 20);
    let before = arena.chunk_capacity();
    let mut numbers = Vec::new_in(&arena);
    let (mut growths, mut moves) = (0, 0);
    for number in 0..1_000_000u64 {
        let (at, room) = (numbers.as_ptr(), numbers.capacity());
        numbers.push(number);
        if room > 0 && numbers.capacity() != room {
            growths += 1;
            moves += u32::from(numbers.as_ptr() != at);
        }
    }
    let used = (before - arena.chunk_capacity()) >> 20;
    println!("{} {growths} {moves} {used}", second < first);
}
RUST
read -r downwards growths moves used < <(cargo run -q --release)
echo "second block before the first: $downwards; growths of the last block $growths," \
  "moves $moves, MiB used $used"
[[ $downwards == true ]] && ((growths > 10 && moves == growths && used <= 9)) ||
  { echo "not what was seen"; exit 1; }
