//! The allocators that Rust programs choose from, side by side in one process:
//! each is asked through `GlobalAlloc`, as a program would ask it.
//!
//!     cargo run --release -- [ROUNDS]
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::mpsc;
use std::time::Instant;

const LIVE: usize = 10_000;

struct Block {
    address: *mut u8,
    layout: Layout,
}
// SAFETY: a block belongs to whoever holds it.
unsafe impl Send for Block {}

/// Sizes up to 1 KiB, the small ones most often; from a fixed seed.
fn next_layout(state: &mut u64) -> Layout {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    let random = (*state >> 33) as usize;
    let size = 1 + random % (16 << (random % 7));
    Layout::from_size_align(size, 8).expect("a small layout")
}

fn take<A: GlobalAlloc>(allocator: &A, state: &mut u64) -> Block {
    let layout = next_layout(state);
    // SAFETY: the size is not 0.
    let address = unsafe { allocator.alloc(layout) };
    assert!(!address.is_null());
    // SAFETY: the block has at least one byte.
    unsafe { address.write(1) };
    Block { address, layout }
}

fn give<A: GlobalAlloc>(allocator: &A, block: Block) {
    // SAFETY: it came from this allocator, with this layout.
    unsafe { allocator.dealloc(block.address, block.layout) }
}

/// A block of many is replaced, again and again.
fn replace<A: GlobalAlloc>(allocator: &A, rounds: usize) {
    let mut state = 7;
    let mut live: Vec<Block> = (0..LIVE).map(|_| take(allocator, &mut state)).collect();
    for _ in 0..rounds {
        let index = (state >> 20) as usize % LIVE;
        let fresh = take(allocator, &mut state);
        give(allocator, std::mem::replace(&mut live[index], fresh));
    }
    live.into_iter().for_each(|block| give(allocator, block));
}

/// One thread allocates, another frees.
fn hand_over<A: GlobalAlloc + Sync>(allocator: &A, rounds: usize) {
    let (send, receive) = mpsc::sync_channel::<Vec<Block>>(16);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for batch in receive {
                batch.into_iter().for_each(|block| give(allocator, block));
            }
        });
        let mut state = 7;
        for _ in 0..rounds / 256 {
            let batch = (0..256).map(|_| take(allocator, &mut state)).collect();
            send.send(batch).expect("the other thread waits");
        }
        drop(send);
    });
}

fn measure<A: GlobalAlloc + Sync>(name: &str, allocator: &A, rounds: usize) {
    let ns = |work: &dyn Fn()| {
        work();
        let best = (0..3).map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        });
        best.min().expect("three runs").as_nanos() as f64 / rounds as f64
    };
    let replaced = ns(&|| replace(allocator, rounds));
    let handed = ns(&|| hand_over(allocator, rounds));
    println!("{name:<10} {replaced:>8.1} {handed:>10.1}");
}

fn main() {
    let rounds = std::env::args()
        .nth(1)
        .map_or(2_000_000, |text| text.parse().expect("a number of rounds"));
    println!(
        "{:<10} {:>8} {:>10}  (ns for one block)",
        "", "replace", "hand over"
    );
    measure("hakmem", &hakmem::Hakmem, rounds);
    measure("mimalloc", &mimalloc::MiMalloc, rounds);
    measure("jemalloc", &tikv_jemallocator::Jemalloc, rounds);
    measure("snmalloc", &snmalloc_rs::SnMalloc, rounds);
    measure("system", &System, rounds);
    let served = hakmem::statistics();
    println!(
        "hakmem served {} blocks, {} freed by another thread",
        served.tiny.allocations, served.remote_frees
    );
}
