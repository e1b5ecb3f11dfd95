#!/bin/bash
# Duktape 2.7.0 (Debian libduktape207 2.7.0-2, x86-64): a name on an array of a million
# numbers copies all of the array.
#
# A good guess: elements of an array lie in one block and its names, as the index and
# input of a regular expression's result, in another, so a name costs a few bytes. Seen:
# an object has one block for elements, names and their table. A name that finds no room
# has a new block made for all, with room for a few names more, and everything moves
# there. So a heap that has just room for a large array has none for a name on it, and
# sixteen names copy the array seven times. The figures after it are the same.
#
# Seen: KiB of the heap with the array 17054; by a first name 0 more, 16956 more at the
# peak; of sixteen names seven with such a peak.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download duktape-dev=2.7.0-2 \
  libduktape207=2.7.0-2
for file in *.deb; do dpkg-deb -x "$file" package; done
duktape=$(find "$PWD/package" -name libduktape.so.207)
cat >names.c <<'C'
#include <duktape.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static size_t now, peak;

static void* Changed(size_t before, void* block) {
  now += malloc_usable_size(block) - before;
  if (now > peak) peak = now;
  return block;
}

static void* Allocate(void* heap, duk_size_t size) {
  (void)heap;
  return size == 0 ? NULL : Changed(0, malloc(size));
}

static void Free(void* heap, void* block) {
  (void)heap;
  now -= malloc_usable_size(block);
  free(block);
}

static void* Reallocate(void* heap, void* block, duk_size_t size) {
  if (size > 0) return Changed(malloc_usable_size(block), realloc(block, size));
  Free(heap, block);
  return NULL;
}

// The KiB by which the peak is above what was there before.
static size_t Run(duk_context* context, const char* code) {
  size_t before = peak = now;
  if (duk_peval_string(context, code) != 0) puts(duk_safe_to_string(context, -1));
  duk_pop(context);
  return (peak - before) >> 10;
}

int main(void) {
  duk_context* context = duk_create_heap(Allocate, Reallocate, Free, NULL, NULL);
  Run(context, "a = []; for (var i = 0; i < 1000000; ++i) a[i] = i;");
  size_t made = now, first = 0;
  int copies = 0;
  for (int i = 0; i < 16; ++i) {
    char code[32];
    snprintf(code, sizeof(code), "a.name%d = 1;", i);
    size_t more = Run(context, code);
    if (i == 0) first = more;
    copies += more > 10000;
  }
  printf("%zu %zu %d %zu\n", made >> 10, first, copies, now >> 10);
  duk_destroy_heap(context);
  return 0;
}
C
gcc -O1 -I package/usr/include -o names names.c "$duktape" -lm
read -r made first copies end < <(LD_LIBRARY_PATH=$(dirname "$duktape") ./names)
echo "KiB with an array of a million $made, more at the first name's peak $first;" \
  "copies by sixteen names $copies; KiB at the end $end"
((first > made * 9 / 10 && copies == 7 && end < made + 100)) ||
  { echo "not what was seen"; exit 1; }
