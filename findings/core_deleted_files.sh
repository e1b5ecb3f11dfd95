#!/bin/bash
# Linux 6.18 (x86-64): a mapped file is not in a core dump, until somebody has deleted
# the file.
#
# A good guess: a core leaves out what can be read from files, which is what the default
# of /proc/PID/coredump_filter says: shared memory of files no, anonymous shared memory
# yes. So a database that maps 64 GiB of its files has small cores. Seen: the kernel
# takes a shared mapping for anonymous if its file has no name any more, as memory of
# memfd_create has none. Whoever replaces or removes the file while it is mapped, as
# updates and rotations do, has it written into the core as a whole, though it was only
# read. gcore of gdb 13.1 does the same.
#
# Seen: KiB of the core of a program that has mapped and read a file of 64 MiB 308, and
# when the file has been deleted 65844.
#
# Needs gcc, kernel.core_pattern as a plain name (the kernel's default is "core"), leave
# for cores, 130 MiB of disk. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
case $(cat /proc/sys/kernel/core_pattern) in
*[\|/]*) echo "cores go elsewhere on this machine"; exit 1 ;;
esac
cat >mapped.c <<'C'
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kBytes = 64 << 20, kPage = 4096 };

int main(int arguments, char** argument) {
  (void)argument;
  int file = open("data", O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, kBytes) != 0) return 1;
  volatile char* data = mmap(NULL, kBytes, PROT_READ, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return 1;
  for (int at = 0; at < kBytes; at += kPage) (void)data[at];
  if (arguments > 1 && unlink("data") != 0) return 1;
  abort();
}
C
gcc -O1 -o mapped mapped.c
core_kib() {
  mkdir "$1"
  (cd "$1" && ulimit -c unlimited && echo 0x33 >/proc/self/coredump_filter &&
    exec ../mapped "${@:2}") 2>/dev/null || true
  stat -c '%s' "$1"/*core* | awk '{print int($1 / 1024)}'
}
named=$(core_kib named)
deleted=$(core_kib deleted x)
echo "KiB of a core, the file of 64 MiB is there: $named, is deleted: $deleted"
((named < 4096 && deleted > 65536)) || { echo "not what was seen"; exit 1; }
