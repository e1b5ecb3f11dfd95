#!/bin/bash
# Linux 6.18 (x86-64): memory that is to be locked when it is touched is locked in one
# figure and in the limit, and not in the other figure.
#
# A good guess: VmLck of status and Locked of smaps are the same, the memory that the
# kernel may not take away. Seen: with mlock2(MLOCK_ONFAULT) VmLck is the length of
# the mapping at once, with no page of it there, and so counts against ulimit -l.
# Locked has the pages that are there. A second of the same mappings in a child by
# fork has neither: locks are not inherited, though the pages are. Shared memory
# halves Locked, as it is a share (Pss), and not VmLck.
#
# Seen: MiB of VmLck and of Locked: 64 MiB on fault, untouched 64, 0; a quarter of it
# touched 64, 16; its child 0, 0; shared memory of 64 MiB, locked by two processes,
# in each 64, 32.
#
# Needs gcc and ulimit -l of 300 MiB, or privileges. Exit status 1: it is not so any
# more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >locked.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBytes = 64 << 20 };

static long FieldMib(const char* file, const char* field) {
  char line[300];
  long kib = 0;
  FILE* stream = fopen(file, "r");
  while (fgets(line, sizeof(line), stream) != NULL)
    if (strncmp(line, field, strlen(field)) == 0) kib = atol(line + strlen(field));
  fclose(stream);
  return kib >> 10;
}

static void Show(void) {
  printf("%ld %ld ", FieldMib("/proc/self/status", "VmLck:"),
         FieldMib("/proc/self/smaps_rollup", "Locked:"));
  fflush(stdout);
}

static char* Map(int flags) {
  return mmap(NULL, kBytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}

int main(void) {
  char* own = Map(MAP_PRIVATE);
  if (mlock2(own, kBytes, MLOCK_ONFAULT) != 0) return 1;
  Show();
  memset(own, 1, kBytes / 4);
  Show();
  if (fork() == 0) {
    Show();
    _exit(0);
  }
  wait(NULL);
  munmap(own, kBytes);

  char* shared = Map(MAP_SHARED);
  int ready[2], done[2];
  char byte = 0;
  if (mlock(shared, kBytes) != 0 || pipe(ready) != 0 || pipe(done) != 0) return 1;
  if (fork() == 0) {
    if (mlock(shared, kBytes) != 0) _exit(1);
    if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  if (read(ready[0], &byte, 1) != 1) return 1;
  Show();
  if (write(done[1], &byte, 1) != 1) return 1;
  int status;
  wait(&status);
  return status != 0;
}
C
gcc -O0 -w -o locked locked.c
seen=$(env -u LD_PRELOAD ./locked)
echo "MiB of VmLck and Locked: untouched, touched, its child, shared by two: $seen"
[[ $seen == "64 0 64 16 0 0 64 32 " ]] || { echo "not what was seen"; exit 1; }
