#!/bin/bash
# glibc 2.36 (Debian, x86-64): a large block that realloc cuts down to 16 bytes stays a
# mapping of its own.
#
# A good guess: a buffer of 256 KiB that is cut to what was read of a line takes what a
# block of that size takes. Seen: a block that malloc mapped is only shortened, by
# mremap, to one page. Each has its page, 256 times the bytes, and its mapping, and of
# mappings a process has 65,530 by default. The threshold that adapts does so when a
# mapped block is freed, and none is.
#
# Seen: 1,000 blocks of 16 bytes: cut down 1,000 mappings and 4,000 KiB; from malloc 0
# mappings and less than 200 KiB.
#
# Needs gcc, glibc 2.36. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >shrink.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char text[1 << 20];
static void* blocks[1000];

static int Mappings(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  int lines = 0;
  if (maps == NULL) exit(1);
  while (fgets(text, sizeof(text), maps) != NULL) ++lines;
  fclose(maps);
  return lines;
}

static long Resident(void) {
  long pages = 0;
  FILE* statm = fopen("/proc/self/statm", "r");
  if (statm == NULL || fscanf(statm, "%*d %ld", &pages) != 1) exit(1);
  fclose(statm);
  return pages * 4;
}

int main(int arguments, char** argument) {
  (void)argument;
  size_t first = arguments > 1 ? 16 : 256 << 10;
  Mappings();
  Resident();
  int mappings = Mappings();
  long resident = Resident();
  for (int i = 0; i < 1000; ++i) {
    char* buffer = malloc(first);
    if (buffer == NULL) return 1;
    memset(buffer, 'a', 16);
    blocks[i] = realloc(buffer, 16);
  }
  resident = Resident() - resident;
  printf("%d %ld\n", Mappings() - mappings, resident);
  return 0;
}
C
gcc -O1 -o shrink shrink.c
read -r mappings resident < <(./shrink)
read -r plain_mappings plain < <(./shrink small)
echo "1,000 blocks of 16 bytes: cut down from 256 KiB: $mappings mappings, $resident" \
  "KiB; asked for so: $plain_mappings mappings, $plain KiB"
((mappings >= 900 && resident >= 3600 && plain_mappings <= 2 && plain < 400)) ||
  { echo "not what was seen"; exit 1; }
