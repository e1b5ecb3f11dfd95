//! hakmem, a malloc that knows every pointer, as Rust's global allocator:
//!
//! ```
//! #[global_allocator]
//! static A: hakmem::Hakmem = hakmem::Hakmem;
//!
//! fn main() {
//!     let text = String::from("on hakmem");
//!     assert!(hakmem::statistics().tiny.allocations > 0);
//!     drop(text);
//! }
//! ```
//!
//! Each block goes back with the size and alignment that Rust knows it by, and
//! both are checked: what is freed twice, with a wrong layout or was never
//! allocated ends the process with a sentence.

mod events;
mod ffi;

pub use events::{failures, set_failure_handler, Failure, Limit};
pub use ffi::{RouteStatistics, Statistics};
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, CStr};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

/// hakmem as a [`GlobalAlloc`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Hakmem;

/// What malloc aligns each block to.
const MALLOC_ALIGNMENT: usize = 16;

// SAFETY: each call is malloc's own or its relatives', which do what the trait
// asks for; layouts decide between the same two forms on every path.
unsafe impl GlobalAlloc for Hakmem {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGNMENT {
            ffi::malloc(layout.size()).cast()
        } else {
            ffi::aligned_alloc(layout.align(), layout.size()).cast()
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.align() <= MALLOC_ALIGNMENT {
            ffi::free_sized(block.cast(), layout.size());
        } else {
            ffi::free_aligned_sized(block.cast(), layout.align(), layout.size());
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGNMENT {
            return ffi::calloc(1, layout.size()).cast();
        }
        let block = self.alloc(layout);
        if !block.is_null() {
            block.write_bytes(0, layout.size());
        }
        block
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.align() <= MALLOC_ALIGNMENT {
            return ffi::realloc(block.cast(), new_size).cast();
        }
        // realloc promises malloc's alignment and no more.
        let moved = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
        if !moved.is_null() {
            moved.copy_from_nonoverlapping(block, layout.size().min(new_size));
            self.dealloc(block, layout);
        }
        moved
    }
}

/// The library's text, which lives as long as the process.
pub(crate) fn text(pointer: *const std::ffi::c_char) -> &'static str {
    // SAFETY: hakmem.h promises a string, never null, that stays.
    unsafe { CStr::from_ptr(pointer) }.to_str().unwrap_or("")
}

/// "MAJOR.MINOR.PATCH".
///
/// ```
/// assert_eq!(hakmem::version().split('.').count(), 3);
/// ```
pub fn version() -> &'static str {
    // SAFETY: may be called at any time.
    text(unsafe { ffi::hakmem_version() })
}

/// "release", "hardened" or "debug", by the crate's features.
///
/// ```
/// assert!(["release", "hardened", "debug"].contains(&hakmem::variant()));
/// ```
pub fn variant() -> &'static str {
    // SAFETY: may be called at any time.
    text(unsafe { ffi::hakmem_variant() })
}

/// What was served, and what is held, since the process started.
///
/// ```
/// # #[global_allocator]
/// # static A: hakmem::Hakmem = hakmem::Hakmem;
/// let before = hakmem::statistics();
/// let block = Box::new([0u8; 4000]);
/// assert!(hakmem::statistics().pool.bytes >= before.pool.bytes + block.len() as u64);
/// ```
pub fn statistics() -> Statistics {
    let mut statistics = Statistics::default();
    // SAFETY: the struct is as long as is said, and of numbers alone.
    unsafe { ffi::hakmem_get_statistics(&mut statistics, size_of::<Statistics>()) };
    statistics
}

fn done(result: c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Writes the statistics as OpenMetrics 1.0, for an endpoint that Prometheus reads.
///
/// ```
/// # #[global_allocator]
/// # static A: hakmem::Hakmem = hakmem::Hakmem;
/// use std::fs::File;
/// # let path = std::env::temp_dir().join(format!("hakmem_metrics.{}", std::process::id()));
///
/// hakmem::write_openmetrics(File::create(&path)?)?;
/// let text = std::fs::read_to_string(&path)?;
/// assert!(text.starts_with("# ") && text.ends_with("# EOF\n"));
/// # std::fs::remove_file(&path)?;
/// # std::io::Result::Ok(())
/// ```
pub fn write_openmetrics(fd: impl AsFd) -> io::Result<()> {
    // SAFETY: the descriptor is open until the call ends.
    done(unsafe { ffi::hakmem_write_openmetrics(fd.as_fd().as_raw_fd()) })
}

/// Gives memory that is kept for reuse back to the kernel; how many bytes.
///
/// ```
/// # #[global_allocator]
/// # static A: hakmem::Hakmem = hakmem::Hakmem;
/// drop(vec![1u8; 10 << 20]);
/// println!("{} bytes went back", hakmem::purge());
/// ```
pub fn purge() -> usize {
    // SAFETY: may be called at any time.
    unsafe { ffi::hakmem_purge() }
}

/// Has up to `count` blocks of `size` bytes ready for this thread; how many.
///
/// ```
/// assert_eq!(hakmem::prewarm(100, 1000), 1000);
/// ```
pub fn prewarm(size: usize, count: usize) -> usize {
    // SAFETY: may be called at any time.
    unsafe { ffi::hakmem_prewarm(size, count) }
}

/// Looks for damage in the whole heap; how many blocks are damaged.
///
/// ```
/// assert_eq!(hakmem::check_heap(), 0);
/// ```
pub fn check_heap() -> usize {
    // SAFETY: may be called at any time.
    unsafe { ffi::hakmem_check_heap() }
}

/// Writes the heap profile, which `hakmem heap FILE` reads: who holds memory, held
/// it at the peak, and has allocated it, by samples. An error of the kind
/// [`Unsupported`](io::ErrorKind::Unsupported) where nothing is sampled.
///
/// ```
/// # #[global_allocator]
/// # static A: hakmem::Hakmem = hakmem::Hakmem;
/// use std::fs::File;
/// # let path = std::env::temp_dir().join(format!("hakmem_profile.{}", std::process::id()));
///
/// match hakmem::heap_profile(File::create(&path)?) {
///     Ok(()) => assert!(std::fs::read_to_string(&path)?.starts_with('{')),
///     Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::Unsupported),
/// }
/// # std::fs::remove_file(&path)?;
/// # std::io::Result::Ok(())
/// ```
pub fn heap_profile(fd: impl AsFd) -> io::Result<()> {
    // SAFETY: the descriptor is open until the call ends.
    done(unsafe { ffi::hakmem_heap_profile(fd.as_fd().as_raw_fd()) })
}
