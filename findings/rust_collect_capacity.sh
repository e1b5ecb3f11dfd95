#!/bin/bash
# Rust's standard library (1.95.0, x86-64): a Vec of ten elements that collect has made
# keeps the memory of the million that were filtered.
#
# A good guess: collect makes a vector for what comes out, so a few numbers filtered
# from many take a few bytes; the source, which into_iter has consumed, is freed. Seen:
# where the source is a Vec, collect writes into its block, and the block stays as long
# as it was: the capacity is the source's. A map of such vectors keeps all that was ever
# filtered. By iter().copied() instead of into_iter() it is a new block, of the right
# size.
#
# Seen: 20 vectors of 10 numbers, of a million each: MiB of capacity and in memory:
# into_iter 152 and 152 or more, iter 0 and less than 20.
#
# Needs rustc. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >filter.rs <<'RUST'
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() >> 8
}

fn numbers() -> Vec<u64> {
    (0..1_000_000).collect()
}

fn main() {
    let consumed = std::env::args().count() > 1;
    let before = resident();
    let kept: Vec<Vec<u64>> = (0..20)
        .map(|_| {
            let wanted = |number: &u64| number % 100_000 == 0;
            match consumed {
                true => numbers().into_iter().filter(wanted).collect(),
                false => numbers().iter().copied().filter(wanted).collect(),
            }
        })
        .collect();
    let length: usize = kept.iter().map(Vec::len).sum();
    let capacity: usize = kept.iter().map(Vec::capacity).sum();
    println!("{length} {} {}", capacity * 8 >> 20, resident() - before);
}
RUST
rustc -O --edition 2021 -o filter filter.rs
read -r length capacity resident < <(./filter consumed)
read -r _ iter_capacity iter_resident < <(./filter)
echo "$(rustc --version): $length numbers, MiB of capacity and in memory: into_iter" \
  "$capacity $resident, iter $iter_capacity $iter_resident"
((length == 200 && capacity >= 150 && resident >= 150 && iter_capacity == 0 &&
  iter_resident < 40)) || { echo "not what was seen"; exit 1; }
