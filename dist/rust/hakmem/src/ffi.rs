//! The C functions, and the structs of `hakmem.h`.
//!
//! Without the feature `override` the crate's malloc has a name of its own, and
//! the rest of the process stays on libc's.
use std::ffi::{c_char, c_int, c_void};

extern "C" {
    #[cfg_attr(not(feature = "override"), link_name = "hakmem_malloc")]
    pub fn malloc(size: usize) -> *mut c_void;
    #[cfg_attr(not(feature = "override"), link_name = "hakmem_calloc")]
    pub fn calloc(count: usize, size: usize) -> *mut c_void;
    #[cfg_attr(not(feature = "override"), link_name = "hakmem_realloc")]
    pub fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
    #[cfg_attr(not(feature = "override"), link_name = "hakmem_aligned_alloc")]
    pub fn aligned_alloc(alignment: usize, size: usize) -> *mut c_void;
    #[cfg_attr(not(feature = "override"), link_name = "hakmem_free_sized")]
    pub fn free_sized(block: *mut c_void, size: usize);
    #[cfg_attr(not(feature = "override"), link_name = "hakmem_free_aligned_sized")]
    pub fn free_aligned_sized(block: *mut c_void, alignment: usize, size: usize);

    pub fn hakmem_version() -> *const c_char;
    pub fn hakmem_variant() -> *const c_char;
    pub fn hakmem_get_statistics(statistics: *mut Statistics, size_bytes: usize) -> usize;
    pub fn hakmem_write_openmetrics(fd: c_int) -> c_int;
    pub fn hakmem_purge() -> usize;
    pub fn hakmem_prewarm(size: usize, count: usize) -> usize;
    pub fn hakmem_check_heap() -> usize;
    pub fn hakmem_heap_profile(fd: c_int) -> c_int;
    pub fn hakmem_failure_events(
        events: *mut Event,
        capacity: usize,
        event_size_bytes: usize,
    ) -> usize;
    pub fn hakmem_set_failure_handler(handler: Option<Handler>, context: *mut c_void);
}

pub type Handler = unsafe extern "C" fn(event: *const Event, context: *mut c_void) -> c_int;

/// Calls served by one route.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteStatistics {
    pub allocations: u64,
    /// Sizes of the blocks served, summed over the calls.
    pub bytes: u64,
}

/// `struct hakmem_statistics`; sizes are in bytes as they are now.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Up to 1 KiB.
    pub tiny: RouteStatistics,
    /// Up to 64 KiB.
    pub pool: RouteStatistics,
    /// In units of 64 KiB.
    pub span: RouteStatistics,
    /// What exceeds the largest span.
    pub huge: RouteStatistics,
    pub remote_frees: u64,
    pub reallocs_in_place: u64,
    pub reallocs_moved: u64,
    pub failures: u64,
    pub mapped_bytes: u64,
    pub peak_mapped_bytes: u64,
    pub metadata_bytes: u64,
    pub granted_bytes: u64,
    pub cached_bytes: u64,
    pub map_calls: u64,
    pub unmap_calls: u64,
    pub purge_calls: u64,
    pub move_calls: u64,
    pub heaps_created: u64,
    pub heaps_abandoned: u64,
    pub refills_from_partial_slabs: u64,
    pub refills_from_empty_slabs: u64,
    pub heaps_adopted: u64,
    pub slabs_from_kept_units: u64,
    pub slabs_from_clean_units: u64,
    pub slabs_from_new_frames: u64,
    pub misuses: u64,
}

pub const MAX_FRAMES: usize = 32;

/// `struct hakmem_failure_event`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    pub sequence: u64,
    pub time_ns: u64,
    pub monotonic_ns: u64,
    pub size_bytes: u64,
    pub alignment_bytes: u64,
    pub count: u64,
    pub class_bytes: u64,
    pub refused_bytes: u64,
    pub limit_value: u64,
    pub limit_use: u64,
    pub limit_needed: u64,
    pub live_bytes: u64,
    pub cached_bytes: u64,
    pub mapped_bytes: u64,
    pub peak_mapped_bytes: u64,
    pub metadata_bytes: u64,
    pub largest_free_bytes: u64,
    pub process_id: i32,
    pub thread_id: i32,
    pub error_number: i32,
    pub attempts: u32,
    pub call: *const c_char,
    pub route: *const c_char,
    pub reason: *const c_char,
    pub detail: *const c_char,
    pub disposition: *const c_char,
    pub refused_call: *const c_char,
    pub thread_name: [c_char; 16],
    pub limit_name: [c_char; 24],
    pub limit_source: [c_char; 96],
    pub frame_count: u32,
    pub reserved: u32,
    pub frames: [u64; MAX_FRAMES],
    pub granted_bytes: u64,
}
