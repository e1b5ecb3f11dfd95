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

/* A snapshot. Counts are since the start of the process, sizes are in bytes
 * as they are now unless they say otherwise. Later versions add fields at the
 * end and never change or remove one. */
struct hakmem_statistics {
  /* Calls served, by route. */
  struct hakmem_route_statistics tiny; /* up to 1 KiB */
  struct hakmem_route_statistics pool; /* over 1 KiB, up to 64 KiB */
  struct hakmem_route_statistics span; /* over 64 KiB, in units of 64 KiB */
  struct hakmem_route_statistics huge; /* what exceeds the largest span */
  uint64_t remote_frees; /* blocks freed by a thread that does not own them */
  uint64_t reallocs_in_place; /* reallocs that kept the address, and that */
  uint64_t reallocs_moved;    /* changed it: in tracing and debug, else 0 */
  uint64_t failures;          /* calls that returned NULL for want of memory */
  /* Memory. */
  uint64_t mapped_bytes;      /* mapped for blocks */
  uint64_t peak_mapped_bytes; /* the most that mapped_bytes has been */
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
  /* Where blocks up to 64 KiB came from when a thread's caches were empty, in
   * the order in which it looks. */
  uint64_t refills_from_partial_slabs; /* its own slabs, partly in use */
  uint64_t refills_from_empty_slabs;   /* its own slabs, wholly free */
  uint64_t heaps_adopted; /* heaps of threads that exited, with their slabs */
  uint64_t slabs_from_kept_units;  /* new slabs of free memory kept as it was */
  uint64_t slabs_from_clean_units; /* of memory that reads as zero */
  uint64_t slabs_from_new_frames;  /* for which the kernel mapped more */
  uint64_t misuses; /* calls refused because of their pointer or size, with
                     * HAKMEM_ON_MISUSE=log */
};

/* Fills `*statistics`. `size_bytes` is the caller's
 * sizeof(struct hakmem_statistics): fields that the caller's version of the
 * struct does not have are not written, fields that the library's version does
 * not have are set to 0. Returns the size in bytes of the library's version. */
size_t hakmem_get_statistics(struct hakmem_statistics* statistics,
                             size_t size_bytes);

/* Writes the statistics to a descriptor as OpenMetrics 1.0, for an endpoint
 * that Prometheus reads: what `hakmem stats --openmetrics` prints of the
 * process (docs/statistics.md). Allocates nothing. Returns 0; -1 with errno, if
 * something could not be written. */
int hakmem_write_openmetrics(int fd);

/* Gives all memory that is kept for reuse back to the kernel, at once, and the
 * pages on which free blocks alone lie. Returns how many bytes that was. */
size_t hakmem_purge(void);

/* Has up to `count` blocks of `size` bytes, at most 65536, ready for the
 * calling thread, with their pages in memory. Returns how many there are;
 * fewer, when memory ran out. Blocks that stay unused go back to the kernel
 * after the decay delay, like all free memory. */
size_t hakmem_prewarm(size_t size, size_t count);

/* Checks the whole heap; returns how many damaged blocks there are. The first
 * is reported as a misuse (HAKMEM_ON_MISUSE), once all have been looked at.
 *
 * Hardened and debug: that nothing was written past the end of a live block
 * and nothing into a free one whose memory was not given back. Every variant:
 * that hakmem's own tables agree; where they do not, the process ends, as
 * nothing can be said of blocks then.
 *
 * Other threads may run meanwhile, and wait for parts of the check. A block
 * that they do not allocate, resize or free during the call is looked at
 * exactly; others may be seen as they were before, as they are after, or not at
 * all. Free blocks that lie in the caches of other threads are looked at, too;
 * writes into them are found. Not looked at are guarded blocks
 * (HAKMEM_GUARD_SAMPLE), blocks of 0 bytes, and blocks that another thread has
 * freed, until their owner has them. A process that was forked while others of
 * its threads ran has a copy of each page from another moment: there only
 * blocks of at most 64 KiB in heaps younger than the fork are looked at, such
 * as those that it allocates in its first second. */
size_t hakmem_check_heap(void);

/* Writes the heap profile to a descriptor: the samples that hakmem has taken of
 * the program's allocations, summed up by the place that made them: live now,
 * at the peak, and since the start. Lines of JSON, docs/heap_profile.md; hakmem
 * heap reads them. Other threads run meanwhile. Returns 0; -1 with errno, if
 * something could not be written, or ENOTSUP where nothing is sampled. */
int hakmem_heap_profile(int fd);

/* --- Failed allocations. docs/failure_events.md explains each field. --------
 */

/* NOLINTNEXTLINE(performance-enum-size,readability-identifier-naming): C */
enum { HAKMEM_MAX_FAILURE_FRAMES = 32 };

/* A call that memory could not be had for, or not at once. Pointers to text
 * live as long as the process and are never NULL. Later versions add fields at
 * the end and never change or remove one. */
struct hakmem_failure_event {
  uint64_t sequence;     /* counts this process's events from 1 */
  uint64_t time_ns;      /* since 1970-01-01 00:00 UTC */
  uint64_t monotonic_ns; /* CLOCK_MONOTONIC */
  /* The request. */
  uint64_t size_bytes; /* one element's, if there is a count */
  uint64_t alignment_bytes;
  uint64_t count;       /* elements of calloc and reallocarray, or 0 */
  uint64_t class_bytes; /* size of the block that would serve it, or 0 */
  /* The refusal, and the limit that explains it (limit_name "": none). */
  uint64_t refused_bytes;
  uint64_t limit_value;
  uint64_t limit_use;
  uint64_t limit_needed;
  /* hakmem's memory after the refusal. */
  uint64_t live_bytes; /* of the blocks that the program held when the call was
                        * first refused; UINT64_MAX: not counted */
  uint64_t cached_bytes;
  uint64_t mapped_bytes;
  uint64_t peak_mapped_bytes;
  uint64_t metadata_bytes;
  uint64_t largest_free_bytes;
  int32_t process_id;
  int32_t thread_id;
  int32_t error_number;     /* errno of the refused kernel call, or 0 */
  uint32_t attempts;        /* how often the call was tried */
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
  uint64_t granted_bytes; /* in slabs, spans and Huge blocks in use: more than
                           * live_bytes, as free blocks of slabs and spans that
                           * threads keep are in it */
};

/* Copies the newest events, newest first, into an array of `capacity` elements
 * of `event_size_bytes` bytes each, the caller's
 * sizeof(struct hakmem_failure_event): fields that the caller's version does
 * not have are not written, those that the library's does not have are set to
 * 0. Returns how many events were copied; the last 256 are kept. */
size_t hakmem_failure_events(struct hakmem_failure_event* events,
                             size_t capacity, size_t event_size_bytes);

/* Called when a call is about to fail, after hakmem has given its own caches
 * back and tried again. It may free memory and return non-zero to have the call
 * tried once more; up to 16 times in one call. It may allocate; what fails
 * meanwhile on the same thread does not call it again. Several threads may call
 * it at once. It must return: no exception, no longjmp. `event` is valid until
 * then; its disposition is "pending". Where its reason is "Threshold", no
 * memory helps: the call is not tried again, whatever is returned. */
/* NOLINTNEXTLINE(modernize-use-using): C has no other way. */
typedef int (*hakmem_failure_handler)(const struct hakmem_failure_event* event,
                                      void* context);

/* NULL: none. Takes the place of the handler that was set before, which may
 * still be running on another thread. */
void hakmem_set_failure_handler(hakmem_failure_handler handler, void* context);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HAKMEM_ALLOCATOR_HAKMEM_H_ */
