#!/bin/bash
# QEMU 7.2 (Debian qemu-user-static 1:7.2+dfsg-7+deb12u*, x86-64): a program run by
# qemu-user sets a limit for its memory, is told of success, and has no limit.
#
# A good guess: system calls go to the kernel, or fail where the emulator cannot carry
# them out. Seen: QEMU drops setrlimit of RLIMIT_AS, RLIMIT_DATA and RLIMIT_STACK, as
# QEMU needs memory itself, and answers 0. getrlimit has the old value. RLIMIT_FSIZE is
# passed on. A test of what happens without memory never runs out of it, and "ulimit -v"
# of an emulated shell bounds nothing. madvise too answers 0 to a number that QEMU does
# not know, so a program that looks for a feature finds it.
#
# Seen: setrlimit of files' size and of the address space to 256 MiB, each with its
# answer and the new limit; then 1 GiB of mmap, then madvise of number 1234: here 0 256,
# 0 256, refused, -1; by QEMU 0 256, 0 and no limit, given, 0.
#
# Needs gcc with a static libc, apt-get (for the package's file, 63 MB; nothing is
# installed), dpkg-deb, tar. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download \
  'qemu-user-static=1:7.2+dfsg-7+deb12u*'
dpkg-deb --fsys-tarfile qemu-user-static*.deb |
  tar -x ./usr/bin/qemu-x86_64-static
cat >limit.c <<'C'
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void Limit(int kind) {
  struct rlimit limit = {256 << 20, 256 << 20};
  printf("%d ", setrlimit(kind, &limit));
  getrlimit(kind, &limit);
  printf("%ld ", limit.rlim_cur == RLIM_INFINITY ? -1 : (long)(limit.rlim_cur >> 20));
}

int main(void) {
  static char page[8192];
  Limit(RLIMIT_FSIZE);
  Limit(RLIMIT_AS);
  void* memory = mmap(NULL, 1 << 30, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  printf("%s ", memory == MAP_FAILED ? "refused" : "given");
  char* start = page + (4096 - (unsigned long)page % 4096) % 4096;
  printf("%d\n", madvise(start, 4096, 1234));
  return 0;
}
C
gcc -O1 -static -o limit limit.c
here=$(ulimit -v unlimited && env -u LD_PRELOAD ./limit)
emulated=$(ulimit -v unlimited && env -u LD_PRELOAD usr/bin/qemu-x86_64-static ./limit)
echo "answers and limits of RLIMIT_FSIZE and RLIMIT_AS in MiB, 1 GiB, unknown advice:" \
  "here $here, by QEMU $emulated"
[[ $here == "0 256 0 256 refused -1" && $emulated == "0 256 0 -1 given 0" ]] ||
  { echo "not what was seen"; exit 1; }
