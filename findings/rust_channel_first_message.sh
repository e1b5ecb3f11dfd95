#!/bin/bash
# Rust's standard library (1.95.0, x86-64): the first message through a channel takes
# the memory of 31.
#
# A good guess: std::sync::mpsc::channel is a list, so a channel that carries one answer
# of 4 KiB takes 4 KiB while the answer is in it. Seen: the first send allocates a block
# with room for 31 messages, by their type's size, and keeps it until both ends are
# gone. A request that carries a channel for its answer, as servers do, costs 31
# answers. sync_channel(1) has room for one, from its start, and a block for boxed
# messages takes 504 bytes.
#
# Seen: bytes of a channel of [u8; 4096] as made 512, with one message 127744, after it
# was received 127744; of sync_channel(1) with one message 4744; of a channel of
# Box<[u8; 4096]> with one message 5112.
#
# Needs rustc. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >message.rs <<'RUST'
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{channel, sync_channel};

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
static GLOBAL: Counting = Counting;

fn main() {
    let start = LIVE.load(Relaxed);
    let (sender, receiver) = channel::<[u8; 4096]>();
    let made = LIVE.load(Relaxed) - start;
    sender.send([1; 4096]).unwrap();
    let sent = LIVE.load(Relaxed) - start;
    receiver.recv().unwrap();
    let received = LIVE.load(Relaxed) - start;
    drop((sender, receiver));

    let start = LIVE.load(Relaxed);
    let (sender, receiver) = sync_channel::<[u8; 4096]>(1);
    sender.send([1; 4096]).unwrap();
    let bounded = LIVE.load(Relaxed) - start;
    drop((sender, receiver));

    let start = LIVE.load(Relaxed);
    let (sender, receiver) = channel::<Box<[u8; 4096]>>();
    sender.send(Box::new([1; 4096])).unwrap();
    let boxed = LIVE.load(Relaxed) - start;
    drop((sender, receiver));
    println!("{made} {sent} {received} {bounded} {boxed}");
}
RUST
rustc -O --edition 2021 -o message message.rs
read -r made sent received bounded boxed < <(./message)
echo "$(rustc --version): bytes: made $made, one sent $sent, received $received; of" \
  "sync_channel(1) $bounded, boxed $boxed"
((made < 1000 && sent > 30 * 4096 && received == sent)) &&
  ((bounded < 6000 && boxed < 7000)) || { echo "not what was seen"; exit 1; }
