#!/bin/bash
# GNU sort of coreutils 9.1 (Debian 12, x86-64): for a file of 1 MB it asks malloc for
# 49 MB, for one that two threads may sort 65, and writes 2 of them.
#
# A good guess: the buffer of sort has the file and a line's entry for each line, so a
# file of a hundred long lines takes little more than its size. Seen: sort does not know
# the lines before it reads, and asks for the room of a file that has an empty line for
# each byte: 48 bytes for each byte, and 16 more for each thread after the first. Their
# number is that of the processors, up to eight, if --parallel does not say. Two files
# take twice as much. The request is bounded by a part of the machine's memory alone, or
# by -S. It costs nothing where malloc maps and does not write, and all of it where
# memory is committed, locked or filled at once.
#
# Seen: bytes asked for 100 lines of 10,000 bytes: one thread 49,000,064, two
# 65,000,096, four 97,000,128, two files and two threads 130,000,096, from a pipe
# 8,519,776, with -S 2M 2,097,184; MiB of peak memory with two threads 2.
#
# Needs gcc, sort 9.1, 2 GiB of memory. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >tell.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void* malloc(size_t bytes) {
  static void* (*next)(size_t);
  if (next == NULL) next = dlsym(RTLD_NEXT, "malloc");
  if (bytes > 1 << 20) {
    char line[32];
    snprintf(line, sizeof(line), "%zu\n", bytes);
    write(2, line, strlen(line));
  }
  return next(bytes);
}
C
gcc -O1 -w -fPIC -shared -o tell.so tell.c -ldl
cat >peak.c <<'C'
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** arguments) {
  struct rusage usage;
  if (fork() == 0) {
    execvp(arguments[1], arguments + 1);
    _exit(127);
  }
  wait4(-1, NULL, 0, &usage);
  printf("%ld\n", usage.ru_maxrss >> 10);
  return 0;
}
C
gcc -O1 -w -o peak peak.c
head -c 999900 /dev/zero | tr '\0' a | fold -w 9999 >file
echo >>file
[[ $(wc -lc <file | xargs) == "100 1000000" ]]
Asked() {  # $@: sort's arguments. The bytes of its one large block
  LC_ALL=C LD_PRELOAD=$PWD/tell.so sort "$@" 2>&1 >sorted
}
one=$(Asked --parallel=1 file)
two=$(Asked --parallel=2 file)
four=$(Asked --parallel=4 file)
files=$(Asked --parallel=2 file file)
pipe=$(Asked --parallel=2 < <(cat file))
bounded=$(Asked --parallel=2 -S 2M file)
peak=$(env -u LD_PRELOAD LC_ALL=C ./peak sort --parallel=2 -o sorted file)
echo "bytes asked for 1 MB: one thread $one, two $two, four $four, two files $files," \
  "from a pipe $pipe, -S 2M $bounded; MiB of peak memory $peak"
((one > 48000000 && two > 64000000 && four > 96000000 && files > 128000000)) &&
  ((pipe < 10000000 && bounded < 3000000 && peak < 8)) ||
  { echo "not what was seen"; exit 1; }
