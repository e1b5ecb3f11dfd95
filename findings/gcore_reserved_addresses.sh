#!/bin/bash
# gdb 13.1 (Debian gdb-minimal 13.1-3, x86-64): gcore writes reserved addresses to
# disk, and the process that it looked at is larger afterwards.
#
# A good guess: a core of a running process is as the kernel's, where memory that was
# never touched takes nothing, and a range mapped without any access (PROT_NONE), as
# allocators and runtimes reserve, is left out. Seen: gdb reads each page of the
# range through /proc/PID/mem, which ignores the protection, and writes it as zeros
# that take room. The reading fills page tables: 2 MiB of them for each GiB remain
# in the process. By that measure a look at a program that reserves 64 GiB needs 64
# GiB of disk and leaves it 128 MiB larger.
#
# Seen: 512 MiB reserved, nothing touched: KiB of page tables before 40, after 1068,
# of the core on disk 524868; with MADV_DONTDUMP 44, 44, 580. The kernel's own core
# of such a process (abort) has 140.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb,
# leave to trace a child of one's own, 600 MiB of disk. Exit status 1: it is not so
# any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >reserve.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void Tables(void) {
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  if (status == NULL) exit(1);
  long tables = 0;
  while (fgets(line, sizeof(line), status) != NULL) {
    sscanf(line, "VmPTE: %ld", &tables);
  }
  fclose(status);
  printf("%ld\n", tables);
  fflush(stdout);
}

int main(int arguments, char** argument) {
  size_t length = (size_t)512 << 20;
  (void)argument;
  void* range = mmap(NULL, length, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return 1;
  if (arguments > 1) madvise(range, length, MADV_DONTDUMP);
  Tables();
  getchar();
  Tables();
  return 0;
}
C
gcc -O1 -o reserve reserve.c
needed=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
  --no-breaks --no-replaces --no-enhances gdb-minimal | grep '^[a-z]' |
  grep -vE '^(libc6|gdb-minimal|debconf.*|cdebconf)$')
apt-get -qq -o APT::Sandbox::User=root download gdb-minimal=13.1-3 $needed
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu:$PWD/package/lib/x86_64-linux-gnu
Look() {  # page tables before and after, the core's KiB on disk
  local before after
  coproc ./reserve "$@"
  local pid=$COPROC_PID from=${COPROC[0]} to=${COPROC[1]}
  read -r before <&"$from"
  LD_LIBRARY_PATH=$libraries package/usr/bin/gdb -nx -batch -p "$pid" \
    -ex "generate-core-file core" >log 2>&1
  echo >&"$to"
  read -r after <&"$from"
  echo "$before $after $(du -k core | cut -f1)"
}
read -r before after disk < <(Look)
read -r apart_before apart_after apart_disk < <(Look apart)
echo "KiB: of 512 MiB reserved: page tables $before, after gcore $after, core on" \
  "disk $disk; with MADV_DONTDUMP: $apart_before, $apart_after, $apart_disk"
((after - before > 900 && disk > 520000 && apart_after - apart_before < 200 &&
  apart_disk < 20000)) || { echo "not what was seen"; exit 1; }
