#!/bin/bash
# glibc 2.36 (Debian libc6 and libc-devtools 2.36-9+deb12u*, x86-64): mtrace reports 10
# of 100 leaks, if a forked child has freed its own copies.
#
# A good guess: mtrace() traces the process that called it. The file is closed at exec,
# so a child is in no trace. Seen: a forked child writes into its parent's file, without
# a mark. To the report its frees are those of the parent's blocks, which have the same
# addresses. A server whose workers clean up at their end has no leaks, though the server
# itself never frees. The report has only the last blocks. Their lines lay in the stream's
# buffer at the fork, and so both processes wrote them.
#
# Seen: blocks in the report "Memory not freed" of a program that never frees 100: alone
# 100, with a forked child that frees its copies 10; allocations in the trace 100 and
# 111.
#
# Needs gcc, perl, apt-get (for the package's file; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libc-devtools=2.36-9+deb12u*'
dpkg-deb -x libc-devtools*.deb package
cat >leak.c <<'C'
#include <mcheck.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBlocks = 100 };
static void* blocks[kBlocks];

int main(int arguments, char** argument) {
  (void)argument;
  mtrace();
  for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(100);
  if (arguments > 1 && fork() == 0) {
    for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
    exit(0);
  }
  if (arguments > 1) wait(NULL);
  return 0;
}
C
gcc -O1 -fno-builtin -o leak leak.c
Leaks() {  # blocks in the report, lines of allocations in the trace
  rm -f trace
  MALLOC_TRACE=$PWD/trace LD_PRELOAD=libc_malloc_debug.so.0 ./leak "$@"
  perl package/usr/bin/mtrace ./leak trace >report || true
  echo "$(grep -c '^0x.* 0x64 ' report) $(grep -c ' 0x64$' trace)"
}
alone=$(Leaks) forked=$(Leaks forked)
echo "blocks not freed, and allocations in the trace: alone $alone, with a child that" \
  "frees $forked"
[[ $alone == "100 100" ]] && ((${forked% *} < 20 && ${forked#* } > 100)) ||
  { echo "not what was seen"; exit 1; }
