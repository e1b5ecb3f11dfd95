//! hakmem as the global allocator of this program.
use std::alloc::{alloc, alloc_zeroed, dealloc, realloc, Layout};
use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};
use std::fs::File;
use std::hint::black_box;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

#[global_allocator]
static ALLOCATOR: hakmem::Hakmem = hakmem::Hakmem;

extern "C" {
    fn strdup(text: *const c_char) -> *mut c_char;
    fn free(block: *mut c_void);
    fn hakmem_get_statistics(statistics: *mut c_void, size: usize) -> usize;
}

fn served() -> u64 {
    let now = hakmem::statistics();
    now.tiny.allocations + now.pool.allocations + now.span.allocations + now.huge.allocations
}

#[test]
fn serves_collections_of_several_threads() {
    let before = served();
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            std::thread::spawn(move || {
                let map: BTreeMap<usize, Vec<u8>> =
                    (0..1000).map(|i| (i, vec![seed; i * 7])).collect();
                assert!(map
                    .values()
                    .all(|bytes| bytes.iter().all(|byte| *byte == seed)));
                map
            })
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no panic").len(), 1000);
    }
    assert!(served() >= before + 4000);
}

#[test]
fn every_layout_comes_and_goes() {
    for align in (0..16).map(|shift| 1usize << shift) {
        for size in [1, 15, 16, 17, 100, 1024, 5000, 65_536, 300_000] {
            let layout = Layout::from_size_align(size, align).expect("a layout");
            let larger = size * 3;
            unsafe {
                let block = alloc_zeroed(layout);
                assert_eq!(block as usize % align, 0);
                assert!(std::slice::from_raw_parts(block, size)
                    .iter()
                    .all(|byte| *byte == 0));
                block.write_bytes(7, size);
                let block = realloc(block, layout, larger);
                assert_eq!(block as usize % align, 0);
                assert!(std::slice::from_raw_parts(block, size)
                    .iter()
                    .all(|byte| *byte == 7));
                let layout = Layout::from_size_align_unchecked(larger, align);
                // A shrink may keep the block: its new size is what counts.
                let block = realloc(block, layout, 1);
                assert_eq!((block as usize % align, *block), (0, 7));
                dealloc(block, Layout::from_size_align_unchecked(1, align));
            }
        }
    }
}

#[test]
fn structs_are_as_the_header_has_them() {
    let mut words = [0u64; 200];
    let size =
        unsafe { hakmem_get_statistics(words.as_mut_ptr().cast(), std::mem::size_of_val(&words)) };
    assert_eq!(size, std::mem::size_of::<hakmem::Statistics>());
    assert!(hakmem::statistics().heaps_created > 0);
    assert!(hakmem::statistics().mapped_bytes > 0);
    assert_eq!(hakmem::statistics().misuses, 0);
}

static ASKED: AtomicUsize = AtomicUsize::new(0);

#[test]
fn a_failed_call_leaves_an_event_with_its_reason() {
    let size = isize::MAX as usize / 4;
    hakmem::set_failure_handler(Some(|size, _| {
        assert_eq!(size, isize::MAX as u64 / 4);
        ASKED.fetch_add(1, Ordering::Relaxed) == 0
    }));
    let block = black_box(unsafe { alloc(Layout::from_size_align(size, 8).expect("a layout")) });
    hakmem::set_failure_handler(None);
    assert!(block.is_null());
    // No memory would have helped, so it is not asked again.
    assert_eq!(ASKED.load(Ordering::Relaxed), 1);
    let failures = hakmem::failures();
    let failure = failures
        .iter()
        .find(|failure| failure.size_bytes == size as u64)
        .expect("an event");
    assert_eq!(
        (failure.call, failure.reason, failure.disposition),
        ("malloc", "Threshold", "returned_null")
    );
    assert!(!failure.detail.is_empty() && !failure.route.is_empty());
}

#[test]
fn answers_about_itself() {
    assert_eq!(hakmem::version(), env!("CARGO_PKG_VERSION"));
    let expected = match (cfg!(feature = "debug"), cfg!(feature = "hardened")) {
        (true, _) => "debug",
        (_, true) => "hardened",
        _ => "release",
    };
    assert_eq!(hakmem::variant(), expected);
    assert_eq!(hakmem::check_heap(), 0);
    assert_eq!(hakmem::prewarm(48, 100), 100);
    hakmem::purge();
}

/// What a function writes into a file.
fn written(name: &str, write: fn(&File) -> io::Result<()>) -> io::Result<String> {
    let path = std::env::temp_dir().join(format!("hakmem_{name}.{}", std::process::id()));
    let result = write(&File::create(&path)?).and_then(|()| std::fs::read_to_string(&path));
    std::fs::remove_file(&path)?;
    result
}

#[test]
fn writes_metrics() {
    let before = hakmem::statistics();
    let text = written("metrics", |file| hakmem::write_openmetrics(file)).expect("metrics");
    let line = text.lines().find(|line| {
        line.starts_with("hakmem_allocations_total{") && line.contains("route=\"tiny\"")
    });
    let (_, value) = line.expect("calls").rsplit_once(' ').expect("a number");
    let value: u64 = value.parse().expect("a number");
    let after = hakmem::statistics();
    assert!((before.tiny.allocations..=after.tiny.allocations).contains(&value));
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn writes_a_heap_profile() {
    let held: Vec<Vec<u8>> = (0..64).map(|_| vec![1; 200_000]).collect();
    let profile = written("profile", |file| hakmem::heap_profile(file));
    drop(held);
    let profile = profile.expect("a profile");
    let first = profile.lines().next().expect("a line");
    let pid = format!("\"pid\":{},", std::process::id());
    assert!(first.starts_with('{') && first.contains(&pid), "{first}");
    assert!(profile.lines().count() > 3);
}

#[test]
fn says_what_cannot_be_written() {
    let unwritable = File::open("/dev/null").expect("it is there");
    let error = hakmem::write_openmetrics(&unwritable).expect_err("it is open for reading");
    // EBADF.
    assert_eq!(error.raw_os_error(), Some(9));
}

/// Once for itself, and once in a process whose statistics are looked at, because
/// other threads of this one allocate as well.
#[test]
fn libc_is_on_hakmem_only_if_that_is_asked_for() {
    const CHILD: &str = "HAKMEM_TEST_COUNTS_STRDUP";
    if std::env::var_os(CHILD).is_none() {
        let test = std::env::current_exe().expect("a path");
        let name = "libc_is_on_hakmem_only_if_that_is_asked_for";
        let done = Command::new(test)
            .args(["--exact", name, "--test-threads=1"])
            .env(CHILD, "1")
            .output()
            .expect("it runs");
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stdout)
        );
        return;
    }
    let before = served();
    for _ in 0..1000 {
        unsafe { free(strdup(c"text".as_ptr()).cast()) };
    }
    let strdups = if cfg!(feature = "override") { 1000 } else { 0 };
    assert!((strdups..strdups + 100).contains(&(served() - before)));
}

/// A block that is freed with another size than it was allocated with.
#[test]
fn a_wrong_layout_ends_the_process() {
    const CHILD: &str = "HAKMEM_TEST_FREES_WRONGLY";
    if std::env::var_os(CHILD).is_some() {
        let size = |bytes| Layout::from_size_align(bytes, 8).expect("a layout");
        unsafe { dealloc(black_box(alloc(size(100))), size(4000)) };
        return;
    }
    let test = std::env::current_exe().expect("a path");
    let child = Command::new(test)
        .args(["--exact", "a_wrong_layout_ends_the_process", "--nocapture"])
        .env(CHILD, "1")
        .output();
    let child = child.expect("it runs");
    assert!(!child.status.success());
    let said = String::from_utf8_lossy(&child.stderr).into_owned();
    assert!(said.contains("hakmem: fatal: "), "{said}");
}
