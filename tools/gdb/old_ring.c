/* Has a failure as an older hakmem keeps it: its event ends before the live
 * bytes. Says that it is ready, and waits. */
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>

struct event {
  uint64_t sequence;
  uint64_t times[2];
  uint64_t request[4];
  uint64_t refused_bytes;
  uint64_t limit[3];
  uint64_t memory[6];
  int32_t numbers[3];
  uint32_t attempts;
  uint8_t kinds[8];
  char thread_name[16];
  char limit_name[24];
  char limit_source[96];
  uint64_t frames[32];
};
_Static_assert(sizeof(struct event) == 552, "as it was");

struct slot {
  uint64_t sequence;
  struct event event;
};

static const struct slot slots[1] = {
    {2,
     {.sequence = 1,
      .times = {1795192801123456789, 123456789},
      .request = {100, 16, 0, 112},
      .memory = {1, 2, 3, 4, 5, 6},
      .numbers = {7, 8, 0},
      .attempts = 1,
      .kinds = {1, 4, 1, 1, 0, 0, 0, 0},
      .thread_name = "old"}}};
static const uint64_t recorded = 1;

struct ring {
  char magic[8];
  uint32_t version;
  uint32_t descriptor_bytes;
  uint32_t capacity;
  uint32_t slot_bytes;
  uint32_t event_offset;
  uint32_t event_bytes;
  const void* recorded;
  const void* slots;
  const char* hakmem_version;
  const char* variant;
};

extern const struct ring hakmem_failure_ring;
__attribute__((visibility("default"))) const struct ring hakmem_failure_ring = {
    "hakfail", 1,   sizeof(struct ring), 1,     sizeof(struct slot),
    8,         552, &recorded,           slots, "0.1.0",
    "release"};

int main(void) {
  /* Whoever likes may look at it. */
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  puts("ready");
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
