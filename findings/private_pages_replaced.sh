#!/bin/bash
# Linux 6.18 (x86-64): a program's own pages of a private mapping are lost when somebody
# writes the file anew, and not when somebody overwrites it.
#
# A good guess: a page of a private mapping that was written is the program's own memory
# from then on, counted as anonymous and apart from the file, so nothing that is done to
# the file reaches it. Seen: that is so for writes into the file and for holes punched
# in it. But to shorten a file takes all pages behind its end out of all mappings, own
# ones and locked ones, too. "cp" and ">" shorten a file to nothing before they write
# it, so the program then reads the new file where its changes were, and RSS has lost
# them.
#
# Seen: a private page with "mine" of a file with "file", after another process wrote
# "new!" into the file: mine; punched a hole: mine; ran cp of a file with "copy" to it:
# copy; the same with the page locked: copy. MiB of RssAnon lost by cp 4 of 4.
#
# Needs gcc, dd, cp, fallocate. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >own.c <<'C'
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kBytes = 4 << 20, kPage = 4096 };

static long AnonKib(void) {
  char line[256];
  long kib = 0;
  FILE* status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof(line), status) != NULL) sscanf(line, "RssAnon: %ld", &kib);
  fclose(status);
  return kib;
}

static void Fill(const char* name, const char* word) {
  FILE* file = fopen(name, "w");
  for (int i = 0; i < kBytes / 4; ++i) fputs(word, file);
  fclose(file);
}

static void Try(const char* command, int locked) {
  Fill("data", "file");
  int file = open("data", O_RDONLY);
  char* map = mmap(NULL, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  close(file);
  for (size_t at = 0; at < kBytes; at += kPage) memcpy(map + at, "mine", 4);
  if (locked && mlock(map, kPage) != 0) exit(1);
  long before = AnonKib();
  if (system(command) != 0) exit(1);
  long lost = before - AnonKib();
  printf("%.4s %ld ", map, lost / 1024);
  fflush(stdout);
  munmap(map, kBytes);
}

int main(void) {
  Fill("copy", "copy");
  Fill("new", "new!");
  Try("dd if=new of=data bs=64k conv=notrunc status=none", 0);
  Try("fallocate --punch-hole --length 4MiB data", 0);
  Try("cp copy data", 0);
  Try("cp copy data", 1);
  puts("");
  return 0;
}
C
gcc -O0 -w -o own own.c
seen=$(env -u LD_PRELOAD ./own)
echo "own page, and MiB of RssAnon lost, after an overwrite, a hole, cp, cp to a" \
  "locked page: $seen"
[[ $seen == "mine 0 mine 0 copy 4 copy 4 " ]] || { echo "not what was seen"; exit 1; }
