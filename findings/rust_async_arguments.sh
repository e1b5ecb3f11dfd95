#!/bin/bash
# Rust 1.95.0 (x86-64): an array that goes through five async functions is six times in
# the future.
#
# A good guess: an argument that is moved on lies in one place, and a future is as large
# as what lives across an await. Seen: the future keeps the argument as it was given,
# and beside it the awaited future, which has it too. The two share no bytes. So each
# async function that only passes a buffer on makes the task's block larger by the
# buffer. A function without "async" that returns the future adds nothing.
#
# Seen: bytes of the future of a function that reads an array of 1,024 bytes after an
# await 2050; of one that passes the array on to it 3075, to it 4100, 5125, 6150; of a
# function that returns the first future 2050; by reference 24.
#
# Needs rustc. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >size.rs <<'RUST'
use std::future::{ready, Future};
use std::mem::size_of_val;

type Array = [u8; 1024];

async fn read(array: Array) -> u8 {
    ready(()).await;
    array[0]
}
async fn second(array: Array) -> u8 {
    read(array).await
}
async fn third(array: Array) -> u8 {
    second(array).await
}
async fn fourth(array: Array) -> u8 {
    third(array).await
}
async fn fifth(array: Array) -> u8 {
    fourth(array).await
}
fn returns(array: Array) -> impl Future<Output = u8> {
    read(array)
}
async fn reference(array: &Array) -> u8 {
    ready(()).await;
    array[0]
}

fn main() {
    let array = [0; 1024];
    println!(
        "{} {} {} {} {} {} {}",
        size_of_val(&read(array)),
        size_of_val(&second(array)),
        size_of_val(&third(array)),
        size_of_val(&fourth(array)),
        size_of_val(&fifth(array)),
        size_of_val(&returns(array)),
        size_of_val(&reference(&array))
    );
}
RUST
rustc -O --edition 2021 -o size size.rs
read -r first second third fourth fifth returns reference <<<"$(./size)"
echo "$(rustc --version): bytes of the futures, $first of the first, passed on $second" \
  "$third $fourth $fifth, without async $returns, by reference $reference"
((first > 2000 && fifth - first >= 4096 && returns == first && reference < 100)) ||
  { echo "not what was seen"; exit 1; }
