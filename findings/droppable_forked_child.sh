#!/bin/bash
# Linux 6.18 (x86-64): memory of MAP_DROPPABLE is zeros in a forked child at once, with
# all memory free, and mlock of it answers 0 and locks nothing.
#
# A good guess: the kernel may drop such memory when memory is short, as its name says,
# and until then it is as any other: a child inherits it, and mlock, which keeps pages
# in memory, keeps these or fails. Seen: the mapping has the flag of MADV_WIPEONFORK for
# good, so a cache that was filled before a server forks is empty in each worker, and
# the program's check for dropped entries finds all dropped. MADV_KEEPONFORK fails.
# mlock and mlockall succeed and leave the memory out. The memory is in no core file,
# and MADV_DODUMP fails. RSS counts it as anonymous memory.
#
# Seen: after 16 MiB were filled with 7, RssAnon 16 MiB more; mlock 0, VmLck 0 KiB;
# MADV_KEEPONFORK and MADV_DODUMP EINVAL; the first byte is 0 in the child and 7 in the
# parent.
#
# Needs gcc, Linux 6.11 or later. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >drop.c <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const size_t kBytes = 16 << 20;
static const int kDroppable = 8;  // MAP_DROPPABLE, which no header here has.

static long Kib(const char* name) {
  char line[256];
  long kib = -1;
  FILE* status = fopen("/proc/self/status", "r");
  while (status != NULL && fgets(line, sizeof(line), status) != NULL)
    if (strncmp(line, name, strlen(name)) == 0)
      sscanf(line + strlen(name), ": %ld", &kib);
  if (status != NULL) fclose(status);
  return kib;
}

static int Refused(void* memory, int advice) {
  return madvise(memory, kBytes, advice) == -1 && errno == EINVAL;
}

int main(void) {
  char* memory = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | kDroppable,
                      -1, 0);
  if (memory == MAP_FAILED) return 1;
  long before = Kib("RssAnon");
  memset(memory, 7, kBytes);
  long filled = (Kib("RssAnon") - before) >> 10;
  int locked = mlock(memory, kBytes);
  printf("%ld %d %ld ", filled, locked, Kib("VmLck"));
  printf("%d %d ", Refused(memory, MADV_KEEPONFORK), Refused(memory, MADV_DODUMP));
  fflush(stdout);
  int status;
  pid_t child = fork();
  if (child == 0) _exit(memory[0]);
  waitpid(child, &status, 0);
  printf("%d %d\n", WEXITSTATUS(status), memory[0]);
  return 0;
}
C
gcc -O0 -w -o drop drop.c
seen=$(env -u LD_PRELOAD ./drop)
echo "MiB of RssAnon, mlock, VmLck, KEEPONFORK and DODUMP refused, first byte in the" \
  "child and the parent: $seen"
[[ $seen =~ ^1[56]\ 0\ 0\ 1\ 1\ 0\ 7$ ]] || { echo "not what was seen"; exit 1; }
