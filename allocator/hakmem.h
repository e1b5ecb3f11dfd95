/* The public C interface of hakmem, beyond malloc and its family.
 *
 * Owns: nothing. Called by: programs that link hakmem or run with it
 * preloaded; usable from C99 and C++. Thread-safety: every function may be
 * called from any thread at any time; none is async-signal-safe.
 *
 * A program that should also run without hakmem declares the functions weak
 * and tests their addresses, or looks them up with dlsym.
 */
#ifndef HAKMEM_ALLOCATOR_HAKMEM_H_
#define HAKMEM_ALLOCATOR_HAKMEM_H_

#include <stddef.h>
#include <stdint.h>

/* This header's version; hakmem_version() is the library's. */
#define HAKMEM_VERSION_MAJOR 0
#define HAKMEM_VERSION_MINOR 1
#define HAKMEM_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* "MAJOR.MINOR.PATCH". The string lives as long as the process. */
const char* hakmem_version(void);

/* "release", "tracing", "hardened" or "debug". */
const char* hakmem_variant(void);

struct hakmem_route_statistics {
  uint64_t allocations; /* calls served since the start */
  uint64_t bytes;       /* sizes of the blocks served, summed over the calls */
};

/* A snapshot. Counts are since the start of the process. Sizes are the bytes
 * of now, unless a field says otherwise. Later versions add fields at the end
 * and never change or remove a field. */
struct hakmem_statistics {
  /* Calls served, by route. */
  struct hakmem_route_statistics tiny; /* up to 1 KiB */
  struct hakmem_route_statistics pool; /* over 1 KiB, up to 64 KiB */
  struct hakmem_route_statistics span; /* over 64 KiB, in units of 64 KiB */
  struct hakmem_route_statistics huge; /* above 256 MiB */
  uint64_t remote_frees;      /* blocks freed by other threads than the owner */
  uint64_t reallocs_in_place; /* reallocs that kept the address, and that */
  uint64_t reallocs_moved;    /* changed it: in tracing and debug, else 0 */
  uint64_t failures;          /* calls that returned NULL for want of memory */
  /* Memory. */
  uint64_t mapped_bytes;      /* mapped for blocks */
  uint64_t peak_mapped_bytes; /* the highest mapped_bytes so far */
  uint64_t metadata_bytes;    /* mapped for hakmem's own tables */
  uint64_t granted_bytes; /* part of mapped_bytes in slabs and spans in use */
  uint64_t cached_bytes;  /* part of mapped_bytes kept free for reuse */
  /* Calls to the kernel. */
  uint64_t map_calls;
  uint64_t unmap_calls;
  uint64_t purge_calls;
  uint64_t move_calls;
  /* Thread heaps. */
  uint64_t heaps_created;
  uint64_t heaps_abandoned; /* now without a thread, waiting for a new one */
  /* The sources of blocks up to 64 KiB when a thread's caches were empty, in
   * the order of its search. */
  uint64_t refills_from_partial_slabs; /* its own slabs, partly in use */
  uint64_t refills_from_empty_slabs;   /* its own slabs, wholly free */
  uint64_t heaps_adopted; /* heaps of threads that exited, with their slabs */
  uint64_t slabs_from_kept_units;  /* new slabs of kept memory with old data */
  uint64_t slabs_from_clean_units; /* of memory that reads as zero */
  uint64_t slabs_from_new_frames;  /* for which the kernel mapped more */
  uint64_t misuses; /* calls refused for their pointer or size, with
                     * HAKMEM_ON_MISUSE=log */
};

/* Fills `*statistics`. `size_bytes` is the caller's
 * sizeof(struct hakmem_statistics). Fields beyond the caller's version of the
 * struct are not written; fields beyond the library's version are set to 0.
 * Returns the size in bytes of the library's version. */
size_t hakmem_get_statistics(struct hakmem_statistics* statistics,
                             size_t size_bytes);

/* Writes the statistics to a descriptor as OpenMetrics 1.0, for an endpoint
 * that Prometheus reads. The text is that of `hakmem stats --openmetrics`
 * (docs/statistics.md). Allocates nothing. Returns 0; -1 with errno, if a write
 * fails. */
int hakmem_write_openmetrics(int fd);

/* Gives all memory kept for reuse back to the kernel at once, and all pages of
 * slabs without a live block. Returns the bytes given back. */
size_t hakmem_purge(void);

/* Has up to `count` blocks of `size` bytes, at most 65536, ready for the
 * calling thread, with their pages in memory. Returns the number of blocks,
 * which is less than `count` when memory runs out. Unused blocks go back to
 * the kernel after the decay delay, like all free memory. */
size_t hakmem_prewarm(size_t size, size_t count);

/* Checks the whole heap; returns the number of damaged blocks. The first is
 * reported as a misuse (HAKMEM_ON_MISUSE), after the look at all blocks.
 *
 * Hardened and debug: nothing was written past the end of a live block, and
 * nothing into a free block whose memory was not given back. Every variant:
 * hakmem's own tables agree. If the tables disagree, the process ends.
 *
 * Other threads may run meanwhile, and wait for parts of the check. Blocks
 * without a call by another thread meanwhile are looked at exactly. Other
 * blocks are seen in the state before or after the call, or not at all. Free
 * blocks in the caches of other threads are looked at, too. Not looked at are
 * guarded blocks (HAKMEM_GUARD_SAMPLE), blocks of 0 bytes, and blocks that
 * another thread has freed, until their owner has the blocks. A process that
 * was forked beside running threads has a copy of each page from another
 * moment. There only blocks of at most 64 KiB in heaps younger than the fork
 * are looked at. */
size_t hakmem_check_heap(void);

/* Writes the heap profile to a descriptor: samples of the program's
 * allocations, summed up by the place of the call: live now, at the peak, and
 * since the start. The output is lines of JSON for `hakmem heap`
 * (docs/heap_profile.md). Other threads run meanwhile. Returns 0; -1 with
 * errno, if a write fails, or ENOTSUP where nothing is sampled. */
int hakmem_heap_profile(int fd);

/* --- Failed allocations. docs/failure_events.md explains each field. --------
 */

/* NOLINTNEXTLINE(performance-enum-size,readability-identifier-naming): C */
enum { HAKMEM_MAX_FAILURE_FRAMES = 32 };

/* A call without memory, or without memory at once. Pointers to text live as
 * long as the process and are never NULL. Later versions add fields at the end
 * and never change or remove a field. */
struct hakmem_failure_event {
  uint64_t sequence;     /* counts this process's events from 1 */
  uint64_t time_ns;      /* since 1970-01-01 00:00 UTC */
  uint64_t monotonic_ns; /* CLOCK_MONOTONIC */
  /* The request. */
  uint64_t size_bytes; /* one element's, if there is a count */
  uint64_t alignment_bytes;
  uint64_t count;       /* elements of calloc and reallocarray, or 0 */
  uint64_t class_bytes; /* size of the fitting block, or 0 */
  /* The refusal, and the limit that explains it (limit_name "": none). */
  uint64_t refused_bytes;
  uint64_t limit_value;
  uint64_t limit_use;
  uint64_t limit_needed;
  /* hakmem's memory after the refusal. */
  uint64_t live_bytes; /* of the program's blocks at the first refusal;
                        * UINT64_MAX: not counted */
  uint64_t cached_bytes;
  uint64_t mapped_bytes;
  uint64_t peak_mapped_bytes;
  uint64_t metadata_bytes;
  uint64_t largest_free_bytes;
  int32_t process_id;
  int32_t thread_id;
  int32_t error_number;     /* errno of the refused kernel call, or 0 */
  uint32_t attempts;        /* tries of the call */
  const char* call;         /* "malloc", "operator new[]", ... */
  const char* route;        /* "tiny", "pool", "span", "huge" */
  const char* reason;       /* "Threshold", "Exhaustion", "MapFail" */
  const char* detail;       /* "heap_limit", "rlimit_as", ... */
  const char* disposition;  /* "returned_null", "served_after_purge", ... */
  const char* refused_call; /* "mmap", "mremap"; "none" */
  char thread_name[16];
  char limit_name[24];
  char limit_source[96];
  uint32_t frame_count;
  uint32_t reserved;
  uint64_t frames[HAKMEM_MAX_FAILURE_FRAMES]; /* return addresses, innermost
                                                 first */
  uint64_t granted_bytes; /* in slabs, spans and Huge blocks in use; with
                           * free blocks of slabs, and spans that threads
                           * keep, and so more than live_bytes */
};

/* Copies the newest events, newest first, into an array of `capacity` elements
 * of `event_size_bytes` bytes each, the caller's
 * sizeof(struct hakmem_failure_event). Fields beyond the caller's version are
 * not written; fields beyond the library's version are set to 0. Returns the
 * number of events copied; the last 256 are kept. */
size_t hakmem_failure_events(struct hakmem_failure_event* events,
                             size_t capacity, size_t event_size_bytes);

/* Called when a call is about to fail, after hakmem has given its own caches
 * back and tried again. The handler may free memory and return non-zero: then
 * the call is tried once more, up to 16 times. The handler may allocate; a
 * failure meanwhile on the same thread does not call the handler again.
 * Several threads may be in the handler at once. The handler must return: no
 * exception, no longjmp. `event` is valid until then; its disposition is
 * "pending". With the reason "Threshold" no memory helps: the call is not tried
 * again. */
/* NOLINTNEXTLINE(modernize-use-using): C has no other way. */
typedef int (*hakmem_failure_handler)(const struct hakmem_failure_event* event,
                                      void* context);

/* NULL: none. Takes the place of the former handler, which may still be
 * running on another thread. */
void hakmem_set_failure_handler(hakmem_failure_handler handler, void* context);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HAKMEM_ALLOCATOR_HAKMEM_H_ */
