#!/bin/bash
# Linux 6.18 (x86-64): MAP_POPULATE of a private mapping of a file copies the file, and
# so does mlock.
#
# A good guess: MAP_POPULATE reads ahead, which is what mmap(2) says of it ("For a file
# mapping, this causes read-ahead on the file"), so that no fault waits for the disk;
# the pages are those of the page cache until somebody writes. Seen: a private mapping
# that may be written is populated by writes. Each page is copied into anonymous memory
# of the process at once, though nothing was written. mlock does the same, and mlockall
# of a program's data. Without PROT_WRITE, or MAP_SHARED, nothing is copied.
#
# Seen: MiB of anonymous memory after a file of 64 MiB was mapped: to be read and
# written 0, with MAP_POPULATE 64, by mlock 64; to be read with MAP_POPULATE 0.
#
# Needs gcc; a limit of locked memory of 64 MiB, or root. Exit status 1: it is not so
# any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >map.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const size_t kLength = (size_t)64 << 20;
static int file;

static long Anonymous(void) {
  char line[200];
  long kib = -1;
  FILE* status = fopen("/proc/self/status", "r");
  if (status == NULL) exit(1);
  while (fgets(line, sizeof(line), status) != NULL) {
    if (strncmp(line, "RssAnon:", 8) == 0) kib = atol(line + 8);
  }
  fclose(status);
  return kib;
}

static void Show(int access, int flags, int lock) {
  long before = Anonymous();
  void* map = mmap(NULL, kLength, access, MAP_PRIVATE | flags, file, 0);
  if (map == MAP_FAILED || (lock && mlock(map, kLength) != 0)) exit(1);
  printf("%ld ", (Anonymous() - before) >> 10);
  munmap(map, kLength);
}

int main(void) {
  file = open("file", O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, kLength) != 0) return 1;
  Anonymous();
  Show(PROT_READ | PROT_WRITE, 0, 0);
  Show(PROT_READ | PROT_WRITE, MAP_POPULATE, 0);
  Show(PROT_READ | PROT_WRITE, 0, 1);
  Show(PROT_READ, MAP_POPULATE, 0);
  puts("");
  return 0;
}
C
gcc -O1 -o map map.c
read -r plain populated locked readable < <(./map)
echo "MiB of anonymous memory: plain $plain, MAP_POPULATE $populated, mlock $locked;" \
  "not to be written, MAP_POPULATE $readable"
((plain <= 1 && populated >= 60 && locked >= 60 && readable <= 1)) ||
  { echo "not what was seen"; exit 1; }
