#!/bin/bash
# Linux 6.18 (x86-64): secret memory, which the kernel itself cannot read, counts as the
# memory of files.
#
# A good guess: memory of memfd_secret counts as that of memfd_create does, in Shmem and
# RssShmem, or as anonymous memory, for there is no file to write it to. Seen: for the
# machine it is in Cached and not in Shmem, for the process in RssFile. A tool takes
# Cached less Shmem for memory that the kernel can drop, and RssAnon with RssShmem for
# a process's own. The first has all of it, and the second none.
#
# Seen: MiB added by 256 MiB: of memfd_secret Cached 256, Shmem 0, Mlocked 256, RssFile
# 256, RssShmem 0, VmLck 256; of memfd_create Cached 256, Shmem 256, Mlocked 0, RssFile
# 0, RssShmem 256, VmLck 0.
#
# Needs gcc, Linux 6.5 or later, leave to lock 256 MiB (root). Exit status 1: it is
# not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >secret.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char* const kFigures[] = {"Cached:", "Shmem:", "Mlocked:", "RssFile:",
                                       "RssShmem:", "VmLck:"};
enum { kCount = sizeof(kFigures) / sizeof(kFigures[0]) };

static void Read(const char* path, long* figures) {
  char line[256];
  FILE* file = fopen(path, "r");
  while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
    for (int i = 0; i < kCount; ++i) {
      if (strncmp(line, kFigures[i], strlen(kFigures[i])) != 0) continue;
      sscanf(line + strlen(kFigures[i]), "%ld", &figures[i]);
    }
  }
  if (file != NULL) fclose(file);
}

int main(int arguments, char** argument) {
  const size_t bytes = (size_t)256 << 20;
  long before[kCount] = {0}, after[kCount] = {0};
  (void)argument;
  int file = arguments > 1 ? (int)syscall(SYS_memfd_secret, 0) : memfd_create("plain", 0);
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) return 1;
  void* memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return 1;
  Read("/proc/meminfo", before);
  Read("/proc/self/status", before);
  before[kCount - 1] = 0;
  memset(memory, 1, bytes);
  Read("/proc/meminfo", after);
  Read("/proc/self/status", after);
  for (int i = 0; i < kCount; ++i) {
    printf("%ld ", (after[i] - before[i] + (16 << 10)) >> 15 << 5);
  }
  return 0;
}
C
gcc -O1 -o secret secret.c
names="Cached, Shmem, Mlocked, RssFile, RssShmem, VmLck"
secret=$(./secret secret)
plain=$(./secret)
echo "MiB added to $names: memfd_secret $secret, memfd_create $plain"
# Cached is the machine's, and others use it too.
read -r cached shmem mlocked file shared locked <<<"$secret"
((cached > 100 && shmem < 100 && mlocked == 256 && file == 256 && shared == 0)) &&
  ((locked == 256)) && [[ $plain =~ ^[0-9]+\ 256\ 0\ 0\ 256\ 0\ $ ]] ||
  { echo "not what was seen"; exit 1; }
