#!/bin/bash
# jemalloc 5.3.0 (Debian libjemalloc2 5.3.0-1, x86-64): a forked child has no
# background thread, though the option says so, and keeps what the parent would give
# back.
#
# A good guess: background_thread:true in MALLOC_CONF holds for the processes of a
# server that forks its workers, as the decay times do. Seen: in the child the option
# is off, and only who asks mallctl finds that. A worker that has freed its memory and
# waits keeps all of it, where the parent is small after the decay time.
#
# Seen: 95 MiB taken and freed, with dirty_decay_ms:200. The parent is below 20 MiB
# within 60 s (after less than 1 s); a child that waits until 5 s have passed still
# has all of what it had. background_thread is 1 and 0, opt.background_thread 1 in
# both.
#
# Needs gcc, apt-get (for the package's files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libjemalloc2=5.3.0-1
dpkg-deb -x libjemalloc2*.deb package
library=$(find "$PWD/package" -name libjemalloc.so.2)
cat >fork.c <<'C'
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int mallctl(const char* name, void* old, size_t* old_bytes, void* new, size_t bytes);

static long InMemory(void) {
  long pages[2];
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", pages, pages + 1) != 2) exit(1);
  fclose(file);
  return pages[1] / 256;
}

static bool Says(const char* name) {
  bool value = false;
  size_t bytes = sizeof(value);
  mallctl(name, &value, &bytes, NULL, 0);
  return value;
}

static void Work(int most_tenths) {
  static char* blocks[1000];
  for (int i = 0; i < 1000; ++i) {
    blocks[i] = malloc(100000);
    memset(blocks[i], 1, 100000);
  }
  for (int i = 0; i < 1000; ++i) free(blocks[i]);
  for (int i = 0; i < most_tenths && InMemory() >= 20; ++i) usleep(100000);
  printf("%d%d %d\n", Says("background_thread"), Says("opt.background_thread"),
         InMemory() < 20);
  fflush(stdout);
}

int main(void) {
  Work(600);
  if (fork() == 0) {
    Work(50);
    _exit(0);
  }
  return wait(NULL) > 0 ? 0 : 1;
}
C
gcc -O0 -fno-builtin -o fork fork.c "$library" -Wl,-rpath,"$(dirname "$library")"
seen=$(MALLOC_CONF=background_thread:true,dirty_decay_ms:200,muzzy_decay_ms:0 ./fork |
  paste -sd ' ')
echo "background_thread and the option, below 20 MiB: parent ${seen% * *}," \
  "child ${seen#* * }"
[[ $seen == "11 1 01 0" ]] || { echo "not what was seen"; exit 1; }
