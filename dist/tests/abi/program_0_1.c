/* A program of 0.1, compiled with the header and linked with the symbols of
 * that time: whatever library it finds must answer as it was promised. Ends
 * with 0, or says which promise is broken. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hakmem_0_1.h"

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                       \
    }                                                                 \
  } while (0)

/* A caller's struct, and what lies behind it and is not the library's. */
struct guarded_statistics {
  struct hakmem_statistics statistics;
  unsigned char behind[512];
};

static int is_filled(const void* memory, size_t size, unsigned char byte) {
  const unsigned char* each = memory;
  for (size_t i = 0; i < size; ++i) {
    if (each[i] != byte) return 0;
  }
  return 1;
}

static int check_statistics(void) {
  struct guarded_statistics all;
  const size_t size = sizeof(all.statistics);
  memset(&all, 0xA5, sizeof(all));
  EXPECT(hakmem_get_statistics(&all.statistics, size) >= size);
  EXPECT(is_filled(all.behind, sizeof(all.behind), 0xA5));
  EXPECT(all.statistics.tiny.allocations != 0);
  EXPECT(all.statistics.pool.bytes >= 5000);
  EXPECT(all.statistics.span.bytes >= 300000);
  EXPECT(all.statistics.mapped_bytes != 0);
  EXPECT(all.statistics.peak_mapped_bytes >= all.statistics.mapped_bytes);
  EXPECT(all.statistics.heaps_created != 0);
  EXPECT(all.statistics.failures != 0);
  EXPECT(all.statistics.misuses == 0);
  /* A program that knows fewer fields yet. */
  const size_t fewer = offsetof(struct hakmem_statistics, mapped_bytes);
  memset(&all, 0xA5, sizeof(all));
  EXPECT(hakmem_get_statistics(&all.statistics, fewer) >= size);
  EXPECT(all.statistics.tiny.allocations != 0);
  EXPECT(is_filled((const char*)&all + fewer, sizeof(all) - fewer, 0xA5));
  /* One that knows more: fields that the library lacks are 0. */
  memset(&all, 0xA5, sizeof(all));
  const size_t known = hakmem_get_statistics(&all.statistics, sizeof(all));
  EXPECT(known >= sizeof(all) ||
         is_filled((const char*)&all + known, sizeof(all) - known, 0));
  return 0;
}

static int check_event(const struct hakmem_failure_event* event) {
  EXPECT(event->sequence == 1);
  EXPECT(event->time_ns != 0 && event->monotonic_ns != 0);
  EXPECT(event->size_bytes == SIZE_MAX / 4);
  EXPECT(event->process_id != 0 && event->thread_id != 0);
  EXPECT(event->attempts != 0);
  EXPECT(strcmp(event->call, "malloc") == 0);
  EXPECT(strcmp(event->reason, "Threshold") == 0);
  EXPECT(event->route[0] != 0 && event->detail[0] != 0);
  EXPECT(event->refused_call[0] != 0);
  EXPECT(event->frame_count <= HAKMEM_MAX_FAILURE_FRAMES);
  return 0;
}

static int asked = 0;
static int count_and_give_up(const struct hakmem_failure_event* event,
                             void* context) {
  if (context == &asked && strcmp(event->disposition, "pending") == 0) ++asked;
  return 0;
}

static int check_failures(void) {
  struct {
    struct hakmem_failure_event event;
    unsigned char behind[512];
  } all;
  hakmem_set_failure_handler(&count_and_give_up, &asked);
  volatile size_t too_much = SIZE_MAX / 4;
  EXPECT(malloc(too_much) == NULL);
  EXPECT(asked == 1);
  hakmem_set_failure_handler(NULL, NULL);
  memset(&all, 0xA5, sizeof(all));
  EXPECT(hakmem_failure_events(&all.event, 1, sizeof(all.event)) == 1);
  EXPECT(is_filled(all.behind, sizeof(all.behind), 0xA5));
  EXPECT(strcmp(all.event.disposition, "returned_null") == 0);
  if (check_event(&all.event) != 0) return 1;
  const size_t fewer = offsetof(struct hakmem_failure_event, granted_bytes);
  memset(&all, 0xA5, sizeof(all));
  EXPECT(hakmem_failure_events(&all.event, 1, fewer) == 1);
  EXPECT(is_filled((const char*)&all + fewer, sizeof(all) - fewer, 0xA5));
  return check_event(&all.event);
}

int main(void) {
  static const size_t sizes[] = {1, 100, 5000, 300000};
  void* volatile blocks[4];
  for (int i = 0; i < 4; ++i) {
    blocks[i] = malloc(sizes[i]);
    EXPECT(blocks[i] != NULL);
  }
  EXPECT(strchr(hakmem_version(), '.') != NULL);
  EXPECT(hakmem_variant()[0] != 0);
  if (check_failures() != 0 || check_statistics() != 0) return 1;
  EXPECT(hakmem_prewarm(64, 10) == 10);
  EXPECT(hakmem_check_heap() == 0);
  for (int i = 0; i < 4; ++i) free(blocks[i]);
  EXPECT(hakmem_purge() != 0);
  return 0;
}
