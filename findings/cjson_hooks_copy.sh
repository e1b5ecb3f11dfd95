#!/bin/bash
# cJSON 1.7.15 (Debian libcjson1 1.7.15-1+deb12u*, x86-64): to give it malloc and free
# by hooks makes it copy what it would have grown.
#
# A good guess: hooks that only call malloc and free cost a call. Seen: there is no
# hook for realloc, so cJSON uses realloc while both hooks are libc's own functions,
# by their addresses, and else takes a block twice as large, copies and frees. Who
# counts with hooks sees other calls than those of the program without, and mremap is
# lost.
#
# Seen: pages faulted to print 64 MiB of JSON: no hooks 16,386; hooks that are malloc
# and free 16,386; hooks that call these 61,960.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libcjson1=1.7.15-1+deb12u*' \
  'libcjson-dev=1.7.15-1+deb12u*'
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libcjson.so.1)
cat >print.c <<'C'
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void* Malloc(size_t bytes) { return malloc(bytes); }
static void Free(void* block) { free(block); }

static long Faults(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

int main(int arguments, char** argument) {
  cJSON_Hooks hooks = {malloc, free};
  if (arguments > 1 && argument[1][0] == 'w') hooks = (cJSON_Hooks){Malloc, Free};
  if (arguments > 1) cJSON_InitHooks(&hooks);
  static char text[(1 << 20) + 1];
  memset(text, 'a', sizeof(text) - 1);
  cJSON* array = cJSON_CreateArray();
  for (int i = 0; i < 64; ++i) cJSON_AddItemToArray(array, cJSON_CreateString(text));
  long before = Faults();
  char* printed = cJSON_PrintUnformatted(array);
  if (printed == NULL) return 1;
  printf("%ld\n", Faults() - before);
  return 0;
}
C
gcc -O0 -o print print.c -Ipackage/usr/include "$library" \
  -Wl,-rpath,"$(dirname "$library")"
none=$(./print)
same=$(./print same)
wrapped=$(./print wrapped)
echo "pages faulted: no hooks $none, malloc and free $same, functions that call them" \
  "$wrapped"
((none < 20000 && same < 20000 && wrapped > 40000)) ||
  { echo "not what was seen"; exit 1; }
