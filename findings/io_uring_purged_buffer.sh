#!/bin/bash
# Linux 6.18 (x86-64): a registered buffer of io_uring whose memory was given back is
# still the old memory for the kernel, and writes of the new bytes bring the old ones.
#
# A good guess: io_uring_register_buffers names a range of addresses, so a buffer from
# malloc can be freed, given back by MADV_DONTNEED, as allocators do, and used again for
# another object at the same address. Seen: the kernel keeps the pages that were there
# at the time. MADV_DONTNEED takes them from the process, RSS falls, and VmPin alone has
# them. The range then has new pages, so it takes twice its memory, and each fixed write
# or read goes to the old ones, without an error. munmap changes nothing of it. Only to
# unregister the buffers frees them.
#
# Seen: a buffer of 64 MiB: MiB of RSS and of VmPin registered 64 64, given back 0 64,
# written again 64 64, unmapped 0 64, unregistered 0 0. The memory has the byte 2, and a
# fixed write of it puts 1 into the file.
#
# Needs gcc, io_uring, 64 MiB of memory that may be locked, apt-get (for the packages'
# files; nothing is installed), dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download liburing2=2.3-3 liburing-dev=2.3-3
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name liburing.so.2)
cat >purge.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kBytes = 64 << 20 };

static long before;

static long Mib(const char* name) {
  char line[256];
  long kib = 0;
  FILE* status = fopen("/proc/self/status", "r");
  if (status == NULL) exit(1);
  while (fgets(line, sizeof(line), status) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) kib = atol(line + strlen(name));
  }
  fclose(status);
  return kib >> 10;
}

static void Show(void) { printf("%ld %ld ", Mib("VmRSS:") - before, Mib("VmPin:")); }

static char Written(struct io_uring* ring, const char* buffer) {
  struct io_uring_cqe* done;
  char byte = 0;
  int file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
  io_uring_prep_write_fixed(io_uring_get_sqe(ring), file, buffer, 4096, 0, 0);
  if (io_uring_submit(ring) != 1 || io_uring_wait_cqe(ring, &done) != 0) exit(1);
  if (done->res != 4096 || pread(file, &byte, 1, 0) != 1) exit(1);
  io_uring_cqe_seen(ring, done);
  close(file);
  return byte;
}

int main(void) {
  struct io_uring ring;
  if (io_uring_queue_init(4, &ring, 0) != 0) return 1;
  before = Mib("VmRSS:");
  char* buffer = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
  if (buffer == MAP_FAILED) return 1;
  memset(buffer, 1, kBytes);
  struct iovec range = {buffer, kBytes};
  if (io_uring_register_buffers(&ring, &range, 1) != 0) return 1;
  Show();
  madvise(buffer, kBytes, MADV_DONTNEED);
  Show();
  memset(buffer, 2, kBytes);
  Show();
  char byte = Written(&ring, buffer);
  printf("%d %d ", buffer[0], byte);
  munmap(buffer, kBytes);
  Show();
  io_uring_unregister_buffers(&ring);
  Show();
  return 0;
}
C
gcc -O1 -o purge purge.c -Ipackage/usr/include "$library" \
  -Wl,-rpath,"$(dirname "$library")"
seen=$(env -u LD_PRELOAD ./purge)
echo "MiB of RSS and VmPin registered, given back, written again; the byte in memory" \
  "and in the file; MiB unmapped, unregistered: $seen"
[[ $seen == "64 64 0 64 64 64 2 1 0 64 0 0 " ]] || { echo "not what was seen"; exit 1; }
