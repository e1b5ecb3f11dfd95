#!/bin/bash
# Linux 6.18, x86-64: a private mapping of an empty memfd takes two pages for each
# page that is written, and RSS shows one.
#
# A good guess: a write to a private mapping goes to a page of the process's own, and
# the file behind stays as it was, which is without any page if it is new. So memory
# that an allocator or a runtime maps of a memfd, for its name or to share it later,
# costs what anonymous memory costs. Seen: the first write to a page has the kernel
# allocate the page of the file, too, and copy its zeros. That page is in no figure of
# the process. MADV_DONTNEED gives the process's page back and leaves the file's. Only
# a hole punched into the file (or its end) gives that back.
#
# Seen: 64 MiB written through a private mapping: MiB of RSS 64, of the file 64; after
# MADV_DONTNEED 0 and 64, after FALLOC_FL_PUNCH_HOLE 0 and 0.
#
# Needs gcc, 128 MiB of memory. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >pages.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int memory;

static void Show(void) {
  long pages = 0;
  struct stat file;
  FILE* statm = fopen("/proc/self/statm", "r");
  if (statm == NULL || fscanf(statm, "%*d %ld", &pages) != 1) return;
  fclose(statm);
  fstat(memory, &file);
  printf("%ld %ld ", pages >> 8, (long)file.st_blocks >> 11);
}

int main(void) {
  size_t length = (size_t)64 << 20;
  memory = memfd_create("heap", 0);
  if (memory < 0 || ftruncate(memory, length) != 0) return 1;
  char* block =
      mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, memory, 0);
  if (block == MAP_FAILED) return 1;
  Show();
  for (size_t at = 0; at < length; at += 4096) block[at] = 1;
  Show();
  madvise(block, length, MADV_DONTNEED);
  Show();
  fallocate(memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, length);
  Show();
  puts("");
  return 0;
}
C
gcc -O1 -o pages pages.c
read -r start empty rss file given left _ punched < <(./pages)
echo "MiB of RSS and of the file: new $start $empty, written $rss $file," \
  "MADV_DONTNEED $given $left, hole punched $punched"
((empty == 0 && rss >= 64 && rss < 70 && file >= 64 && given < 6 && left >= 64 &&
  punched == 0)) || { echo "not what was seen"; exit 1; }
