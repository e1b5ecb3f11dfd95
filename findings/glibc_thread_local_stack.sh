#!/bin/bash
# glibc 2.36 (Debian, x86-64): a program's thread_local variables lie in each thread's
# stack, and the stack is said to be as large as without them.
#
# A good guess: thread-local memory is apart from the stack, so functions can use the 8
# MiB of a stack, whatever thread_local arrays there are. Seen: glibc takes the arrays
# from the top of the stack. With an array of 6 MiB a thread's functions have 2 MiB, and
# pthread_getattr_np says 8 MiB. pthread_attr_setstacksize takes 4 MiB, and then
# pthread_create fails with EINVAL.
#
# Seen: KiB of the stack by pthread_getattr_np, and below the first function's
# variables: 8192 2043; the answer for a stack of 4 MiB 22 (EINVAL), of 7 MiB 0.
#
# Needs gcc, glibc. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >local.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

static _Thread_local volatile char array[6 << 20];
static size_t stack_kib, left_kib;

static void* Look(void* unused) {
  char here;
  pthread_attr_t attributes;
  void* start;
  size_t bytes;
  array[0] = 1;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &start, &bytes);
  pthread_attr_destroy(&attributes);
  stack_kib = bytes >> 10;
  left_kib = (size_t)(&here - (char*)start) >> 10;
  return unused;
}

static int Start(size_t mib) {
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, mib << 20);
  int answer = pthread_create(&thread, &attributes, Look, NULL);
  return answer == 0 ? pthread_join(thread, NULL) : answer;
}

int main(void) {
  int answers[] = {Start(4), Start(7), Start(8)};
  printf("%zu %zu %d %d %d\n", stack_kib, left_kib, answers[0], answers[1], answers[2]);
  return 0;
}
C
gcc -O1 -o local local.c -pthread
read -r stack left four seven eight <<<"$(env -u LD_PRELOAD ./local)"
echo "KiB of the stack $stack, of which left $left; answers for 4, 7 and 8 MiB: $four" \
  "$seven $eight"
((stack == 8192 && left > 1900 && left < 2048)) &&
  [[ "$four $seven $eight" == "22 0 0" ]] || { echo "not what was seen"; exit 1; }
