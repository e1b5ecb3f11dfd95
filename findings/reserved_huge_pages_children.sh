#!/bin/bash
# glibc 2.36 with glibc.malloc.hugetlb=2 and mimalloc 2.0.9 (Debian libmimalloc2.0
# 2.0.9+ds-2, x86-64) with MIMALLOC_LARGE_OS_PAGES=1: a forked child that writes to its
# blocks dies of SIGBUS while gigabytes are free.
#
# A good guess: the two use reserved huge pages while there are some, and small pages
# after that, so a child's copies of its parent's pages come from either. Seen: a copy
# of a reserved page must be a reserved page. Where the pool has fewer left than the
# child writes to, the kernel ends the child by SIGBUS, at a plain store. Nothing in
# the parent's memory figure gives a warning: reserved pages are not part of RSS.
#
# Seen with 250 reserved pages and 381 MiB of blocks, RSS of the parent in MiB and the
# signal that ended the child: glibc 382 and none, with hugetlb=1 384 and none, with
# hugetlb=2 1 and 7; mimalloc 392 and none, with large pages 29 and 7.
#
# Needs gcc, apt-get (for the package's file; nothing is installed), dpkg-deb, root for
# vm.nr_hugepages (which is put back), 2 GiB of memory. Exit status 1: it is not so any
# more.
set -euo pipefail
folder=$(mktemp -d)
pool=/proc/sys/vm/nr_hugepages
before=$(<"$pool")
trap 'echo "$before" >"$pool"; rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libmimalloc2.0=2.0.9+ds-2
dpkg-deb -x libmimalloc2.0_*.deb package
mimalloc=$(find "$PWD/package" -name libmimalloc.so.2)
cat >child.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlocks = 4000, kSize = 100000 };
static char* blocks[kBlocks];

int main(void) {
  for (int i = 0; i < kBlocks; ++i) {
    blocks[i] = malloc(kSize);
    if (blocks[i] == NULL) return 2;
    memset(blocks[i], 1, kSize);
  }
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) return 1;
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < kBlocks; ++i) memset(blocks[i], 2, kSize);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("%ld %d\n", pages * 4096 >> 20,
         WIFSIGNALED(status) ? WTERMSIG(status) : 0);
  return 0;
}
C
gcc -O0 -o child child.c
echo 250 >"$pool"
[[ $(<"$pool") == 250 ]] || { echo "no 250 huge pages could be reserved"; exit 1; }
seen=
for hugetlb in 0 1 2; do
  read -r rss signal < <(GLIBC_TUNABLES=glibc.malloc.hugetlb=$hugetlb ./child)
  seen+="$((rss < 64)) $signal "
  echo "glibc, hugetlb=$hugetlb: RSS $rss MiB, the child's signal $signal"
done
for large in 0 1; do
  read -r rss signal < <(MIMALLOC_LARGE_OS_PAGES=$large LD_PRELOAD=$mimalloc ./child)
  seen+="$((rss < 64)) $signal "
  echo "mimalloc, large pages $large: RSS $rss MiB, the child's signal $signal"
done
[[ $seen == "0 0 0 0 1 7 0 0 1 7 " ]] || { echo "not what was seen"; exit 1; }
