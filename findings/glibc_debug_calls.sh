#!/bin/bash
# glibc 2.36 (Debian, x86-64): mtrace() and mcheck() do nothing, and say so by nothing.
#
# A good guess: a program that calls mtrace() with MALLOC_TRACE set writes a trace, as
# its manual page shows, and one that is linked with -lmcheck is checked. Seen: since
# glibc 2.34 all of that is in libc_malloc_debug.so, which nothing loads. The calls are
# there, link and return, the archive libmcheck.a is empty, and MALLOC_TRACE,
# MALLOC_CHECK_ and M_CHECK_ACTION are read by nobody. Only LD_PRELOAD of the other
# library makes them work, and it has to be there before the first malloc.
#
# Seen: mprobe of a live block and lines of trace: alone -1 (MCHECK_DISABLED) and no
# file; linked with -lmcheck the same; with LD_PRELOAD of libc_malloc_debug.so.0 0
# (MCHECK_OK) and 4 lines or more.
#
# Needs gcc, Debian's libc6 2.36 (it has libc_malloc_debug.so.0) and libc6-dev. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >probe.c <<'C'
#include <mcheck.h>
#include <stdio.h>
#include <stdlib.h>

int main(int arguments, char** argument) {
  (void)argument;
  if (arguments > 1) {
    mtrace();
    free(malloc(100));
    muntrace();
    return 0;
  }
  int checked = mcheck(NULL);
  void* volatile block = malloc(100);
  printf("%d %d\n", checked, mprobe(block));
  free(block);
  return 0;
}
C
gcc -O0 -fno-builtin -o probe probe.c 2>/dev/null
gcc -O0 -fno-builtin -o linked probe.c -lmcheck 2>/dev/null
lines() {  # COMMAND...
  rm -f trace
  MALLOC_TRACE=$PWD/trace "$@" trace
  [[ -e trace ]] && wc -l <trace || echo none
}
debug=libc_malloc_debug.so.0
alone="$(MALLOC_CHECK_=3 ./probe) $(lines ./probe)"
linked="$(./linked) $(lines ./linked)"
loaded="$(LD_PRELOAD=$debug ./probe) $(lines env LD_PRELOAD=$debug ./probe)"
echo "mcheck, mprobe and lines of trace: alone $alone; with -lmcheck $linked;" \
  "with LD_PRELOAD of $debug $loaded"
[[ $alone == *" -1 none" && $linked == *" -1 none" && $loaded == "0 0 "[1-9]* ]] ||
  { echo "not what was seen"; exit 1; }
