#!/bin/bash
# Rust's standard library (1.95.0) and libc6-dbg 2.36-9+deb12u* (Debian, x86-64): where
# glibc's debug package is, the first backtrace of a Rust program takes 30 MiB for good.
#
# A good guess: a backtrace that was printed and dropped leaves nothing, or what its own
# program's debug information needs, which is little in a release build. Debug packages
# are read by debuggers. Seen: each stack ends in libc's start of the program, so the
# library looks for libc's debug file, too, as a debugger does. It reads what it finds
# into tables of its own, and keeps them for the next backtrace. libc6-dbg comes along
# with valgrind. A service that catches one panic, or puts a backtrace into one error,
# is 30 MiB larger from then on, on machines where somebody has used valgrind.
#
# Seen: KiB by a counting allocator after one backtrace was printed and dropped: with
# glibc's debug file 30657, linked without a shared libc 96.
#
# Needs rustc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libc6=2.36-9+deb12u*' \
  'libc6-dbg=2.36-9+deb12u*' 'libgcc-s1=12.2.0-14*'
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/lib/x86_64-linux-gnu
id=$(LC_ALL=C readelf -n "$libraries/libc.so.6" | awk '/Build ID:/ {print $3}')
cp "package/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" "$libraries"
cat >trace.rs <<'RUST'
use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
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

fn main() {
    let before = LIVE.load(Relaxed);
    drop(Backtrace::force_capture().to_string());
    println!("{}", (LIVE.load(Relaxed) - before) >> 10);
}
RUST
loader=$libraries/ld-linux-x86-64.so.2
rustc -O --edition 2021 -C strip=debuginfo -o shared trace.rs \
  -C link-arg="-Wl,--dynamic-linker=$loader,-rpath=$libraries"
rustc -O --edition 2021 -C strip=debuginfo -C target-feature=+crt-static -o static \
  trace.rs
shared=$(./shared)
static=$(./static)
echo "KiB kept after a backtrace ($(rustc --version)): with glibc's debug file" \
  "$shared, without a shared libc $static"
((shared > 20000 && static < 1000)) || { echo "not what was seen"; exit 1; }
