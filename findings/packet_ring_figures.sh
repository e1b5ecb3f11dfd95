#!/bin/bash
# Linux 6.18 (x86-64): the kernel's ring for packets is the process's memory of files,
# as often as it is mapped.
#
# A good guess: RssFile counts pages of files, which are in the page cache and can be
# dropped, and a ring that the kernel fills for a socket is the kernel's memory. Seen:
# the pages of a mapped packet ring, as tcpdump and other captures have, are in RssFile
# and in Mapped of /proc/meminfo, and Cached does not have them. None can be dropped. A
# second mapping of the ring counts again. MADV_DONTNEED lowers the process's figure,
# and the ring stays.
#
# Seen: MiB by which RssFile grew with a ring of 64 MiB: made 0, mapped 64, mapped twice
# 128, after MADV_DONTNEED for one of the mappings 64; Cached grew by 0.
#
# Needs gcc, leave to open a packet socket (root). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >ring.c <<'C'
#include <linux/if_packet.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum { kBlock = 1 << 16, kBlocks = 1024, kAll = kBlock * kBlocks, kFrame = 2048 };

static long Figure(const char* path, const char* form) {
  char line[256];
  long kib = -1;
  FILE* file = fopen(path, "r");
  if (file == NULL) return -1;
  while (fgets(line, sizeof(line), file) != NULL && sscanf(line, form, &kib) != 1) {
  }
  fclose(file);
  return kib;
}

static long OfFiles(void) { return Figure("/proc/self/status", "RssFile: %ld") >> 10; }

static char* Map(int ring) {
  return mmap(NULL, kAll, PROT_READ | PROT_WRITE, MAP_SHARED, ring, 0);
}

int main(void) {
  int ring = socket(AF_PACKET, SOCK_RAW, 0);  // protocol 0: no packet ever comes
  struct tpacket_req request = {kBlock, kBlocks, kFrame, kAll / kFrame};
  long before = OfFiles(), cached = Figure("/proc/meminfo", "Cached: %ld");
  if (ring < 0 || setsockopt(ring, SOL_PACKET, PACKET_RX_RING, &request,
                             sizeof(request)) != 0) {
    return 1;
  }
  long made = OfFiles();
  char* first = Map(ring);
  long mapped = OfFiles();
  char* second = Map(ring);
  long twice = OfFiles();
  if (first == MAP_FAILED || second == MAP_FAILED) return 1;
  if (madvise(second, kAll, MADV_DONTNEED) != 0) return 1;
  cached = Figure("/proc/meminfo", "Cached: %ld") - cached;
  printf("%ld %ld %ld %ld %ld\n", made - before, mapped - before, twice - before,
         OfFiles() - before, cached >> 10);
  return 0;
}
C
gcc -O1 -o ring ring.c
read -r made mapped twice advised cached < <(./ring)
echo "MiB of RssFile by a ring of 64 MiB: made $made, mapped $mapped, twice $twice," \
  "after MADV_DONTNEED for one $advised; of Cached $cached"
((made < 5 && mapped >= 62 && twice >= 125 && advised < 70 && cached < 48)) ||
  { echo "not what was seen"; exit 1; }
