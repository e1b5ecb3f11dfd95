#!/bin/bash
# Linux 6.18 (x86-64): VmLib, the size of the shared libraries' code, grows by 64 MiB of
# memory without a library or a file.
#
# A good guess: VmLib of /proc/PID/status adds up what the process has mapped of shared
# libraries, as proc(5) says ("Shared library code size"), and memory for compiled code
# is in VmData. Seen: the kernel counts all that may be run and not be written, and
# takes the program's own code away. So code of a compiler at run time is a library's,
# anonymous or not. While the same memory may be written, too, it is data. Once it may
# only be read it is in neither figure, as are the constants of all libraries.
#
# Seen: MiB by which VmLib and VmData grew with 64 MiB of anonymous memory: to be read
# and run 64 and 0, to be written, too, 0 and 64, to be read 0 and 0.
#
# Needs gcc. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >library.c <<'C'
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

static const size_t kAll = 64 << 20;

static long Figure(const char* form) {
  char line[256];
  long kib = -1;
  FILE* status = fopen("/proc/self/status", "r");
  if (status == NULL) return -1;
  while (fgets(line, sizeof(line), status) != NULL && sscanf(line, form, &kib) != 1) {
  }
  fclose(status);
  return kib;
}

int main(void) {
  char* code = mmap(NULL, kAll, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 1;
  long library = Figure("VmLib: %ld"), data = Figure("VmData: %ld");
  const int accesses[] = {PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC,
                          PROT_READ};
  for (int i = 0; i < 3; ++i) {
    if (mprotect(code, kAll, accesses[i]) != 0) return 1;
    printf("%ld %ld ", (Figure("VmLib: %ld") - library) >> 10,
           (Figure("VmData: %ld") - data) >> 10);
  }
  printf("\n");
  return 0;
}
C
gcc -O1 -o library library.c
seen=$(./library)
echo "MiB more of VmLib and VmData: read and run, written too, read only: $seen"
[[ $seen == "64 0 0 64 0 0 " ]] || { echo "not what was seen"; exit 1; }
