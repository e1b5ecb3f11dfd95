//! Failed allocations as Rust values.
use crate::{ffi, text};
use std::ffi::{c_char, c_int, c_void, CStr};
use std::mem::{size_of, MaybeUninit};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The library keeps so many.
const KEPT: usize = 256;

/// A call that memory could not be had for, or not at once; `docs/failure_events.md`
/// explains each field.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// Counts this process's failures from 1.
    pub sequence: u64,
    /// Since 1970-01-01 00:00 UTC.
    pub time_ns: u64,
    pub size_bytes: u64,
    pub alignment_bytes: u64,
    /// "malloc", "aligned_alloc", ...
    pub call: &'static str,
    /// "tiny", "pool", "span", "huge".
    pub route: &'static str,
    /// "Threshold", "Exhaustion", "MapFail".
    pub reason: &'static str,
    /// "heap_limit", "rlimit_as", ...
    pub detail: &'static str,
    /// "returned_null", "served_after_purge", "pending", ...
    pub disposition: &'static str,
    pub attempts: u32,
    /// errno of the refused call of the kernel, or 0.
    pub error_number: i32,
    /// The limit that explains it, where one does.
    pub limit: Option<Limit>,
    /// What the program held; none: it was not counted.
    pub live_bytes: Option<u64>,
    pub mapped_bytes: u64,
    pub granted_bytes: u64,
    pub thread_name: String,
    /// Return addresses, the innermost first.
    pub frames: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limit {
    /// "RLIMIT_AS", "vm.max_map_count", ...
    pub name: String,
    /// Where it was read.
    pub source: String,
    pub value: u64,
    pub used: u64,
    pub needed: u64,
}

fn field(characters: &[c_char]) -> String {
    // SAFETY: the library ends each of its fields with a NUL.
    unsafe { CStr::from_ptr(characters.as_ptr()) }
        .to_string_lossy()
        .into_owned()
}

impl Failure {
    fn new(event: &ffi::Event) -> Self {
        let name = field(&event.limit_name);
        Self {
            sequence: event.sequence,
            time_ns: event.time_ns,
            size_bytes: event.size_bytes,
            alignment_bytes: event.alignment_bytes,
            call: text(event.call),
            route: text(event.route),
            reason: text(event.reason),
            detail: text(event.detail),
            disposition: text(event.disposition),
            attempts: event.attempts,
            error_number: event.error_number,
            limit: (!name.is_empty()).then(|| Limit {
                name,
                source: field(&event.limit_source),
                value: event.limit_value,
                used: event.limit_use,
                needed: event.limit_needed,
            }),
            live_bytes: (event.live_bytes != u64::MAX).then_some(event.live_bytes),
            mapped_bytes: event.mapped_bytes,
            granted_bytes: event.granted_bytes,
            thread_name: field(&event.thread_name),
            frames: event.frames[..(event.frame_count as usize).min(ffi::MAX_FRAMES)].to_vec(),
        }
    }
}

/// The last failed allocations, the newest first.
///
/// ```
/// # #[global_allocator]
/// # static A: hakmem::Hakmem = hakmem::Hakmem;
/// assert!(Vec::<u8>::new().try_reserve(isize::MAX as usize).is_err());
/// let failures = hakmem::failures();
/// assert_eq!((failures[0].call, failures[0].size_bytes), ("malloc", i64::MAX as u64));
/// ```
pub fn failures() -> Vec<Failure> {
    let mut events = Vec::<MaybeUninit<ffi::Event>>::with_capacity(KEPT);
    // SAFETY: there is room for so many, and each that is counted is written whole.
    unsafe {
        let count =
            ffi::hakmem_failure_events(events.as_mut_ptr().cast(), KEPT, size_of::<ffi::Event>());
        events.set_len(count);
        events
            .iter()
            .map(|event| Failure::new(event.assume_init_ref()))
            .collect()
    }
}

static HANDLER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" fn ask(event: *const ffi::Event, _context: *mut c_void) -> c_int {
    let handler = HANDLER.load(Ordering::Acquire);
    if handler.is_null() {
        return 0;
    }
    // SAFETY: nothing but such functions is stored there.
    let handler: fn(u64, u64) -> bool = std::mem::transmute(handler);
    handler((*event).size_bytes, (*event).alignment_bytes).into()
}

/// Called with size and alignment when a call is about to fail, after hakmem has
/// given its own caches back: it may free memory and return true to have the
/// call tried again, up to 16 times. Where no memory helps (`Threshold`), it is
/// asked once, and the call is not tried again. It must not panic. None: nobody
/// is asked.
///
/// ```
/// # #[global_allocator]
/// # static A: hakmem::Hakmem = hakmem::Hakmem;
/// use std::sync::Mutex;
/// static SPARE: Mutex<Vec<u8>> = Mutex::new(Vec::new());
///
/// *SPARE.lock().unwrap() = vec![0; 1 << 20];
/// hakmem::set_failure_handler(Some(|_size, _alignment| {
///     let had_some = SPARE.try_lock().map(|mut spare| std::mem::take(&mut *spare));
///     had_some.is_ok_and(|spare| !spare.is_empty())
/// }));
/// assert!(Vec::<u8>::new().try_reserve(isize::MAX as usize).is_err());
/// assert!(SPARE.lock().unwrap().is_empty());
/// ```
pub fn set_failure_handler(handler: Option<fn(size: u64, alignment: u64) -> bool>) {
    let function = handler.map_or(std::ptr::null_mut(), |function| function as *mut c_void);
    HANDLER.store(function, Ordering::Release);
    // SAFETY: `ask` neither panics, unless the handler does, nor keeps the event.
    unsafe {
        ffi::hakmem_set_failure_handler(handler.map(|_| ask as ffi::Handler), std::ptr::null_mut())
    }
}
