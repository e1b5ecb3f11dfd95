#!/bin/bash
# jeprof 5.3.0 (Debian libjemalloc-dev 5.3.0-1): a Rust function on an array is two
# frames in its collapsed stacks.
#
# A good guess: jeprof --collapsed writes a frame as one field between semicolons, as
# readers of the format split it. Seen: the names come as the demangler gives them,
# and Rust writes array types with a semicolon: "<[u8; 4] as Keep>::keep" is read as
# the frame "<[u8" that calls " 4] as Keep>::keep". Arrays of one element type, of
# whatever length and for whatever trait, thus share a parent that is no function.
#
# Seen: the pieces "<[u8" and " 4] as main::Keep>::keep".
#
# Needs rustc, perl, binutils, apt-get (for the packages' files; nothing is
# installed), dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libjemalloc-dev=5.3.0-1 \
  libjemalloc2=5.3.0-1
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libjemalloc.so.2)
cat >main.rs <<'RUST'
trait Keep {
    fn keep(&self) -> Vec<u8>;
}

impl Keep for [u8; 4] {
    #[inline(never)]
    fn keep(&self) -> Vec<u8> {
        let mut kept = Vec::with_capacity(100_000);
        kept.extend_from_slice(self);
        std::hint::black_box(kept)
    }
}

fn main() {
    for i in 0..100 {
        std::mem::forget(std::hint::black_box([i as u8; 4]).keep());
    }
}
RUST
rustc -g -C opt-level=1 -o main main.rs
MALLOC_CONF=prof:true,lg_prof_sample:0,prof_final:true,prof_prefix:heap \
  LD_PRELOAD=$library ./main
perl package/usr/bin/jeprof --collapsed main heap.*.heap 2>/dev/null >stacks
pieces=$(grep 'Keep>::keep' stacks | head -n 1 | tr ';' '\n' | grep -B 1 'Keep>::keep')
echo "the frame of <[u8; 4] as Keep>::keep, split at semicolons:"
echo "$pieces"
[[ $pieces == $'<[u8\n 4] as main::Keep>::keep' ]] ||
  { echo "not what was seen"; exit 1; }
