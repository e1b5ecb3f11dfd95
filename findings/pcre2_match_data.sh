#!/bin/bash
# PCRE2 10.42 (Debian libpcre2-8-0 10.42-1*, x86-64): a match data of some hundred
# bytes, by PCRE2's own figure, keeps the memory of its hardest match.
#
# A good guess: pcre2_match_data_create makes the block for the result, its size is
# pcre2_get_match_data_size, and what a match needs besides goes when it returns. Seen:
# since 10.41 the frames of backtracking lie in a block that the match data keeps for
# the next match. It grows by doubling, up to the heap limit of 20 GB, never shrinks,
# and is in no figure. A server that keeps one match data for each worker keeps the
# worst text that each has met.
#
# Seen: KiB taken of malloc for a match of 10 letters 20; after one of 100,000 letters
# 81,920 stay, after ten more of 10 letters too; the own figure is 160 bytes throughout.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libpcre2-8-0=10.42-1*' \
  'libpcre2-dev=10.42-1*'
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libpcre2-8.so.0)
cat >match.c <<'C'
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t live;

static void* Take(size_t bytes, void* nothing) {
  (void)nothing;
  size_t* block = malloc(bytes + 16);
  if (block == NULL) return NULL;
  live += *block = bytes;
  return block + 2;
}

static void Give(void* block, void* nothing) {
  (void)nothing;
  if (block == NULL) return;
  live -= *((size_t*)block - 2);
  free((size_t*)block - 2);
}

static pcre2_code* code;
static pcre2_match_data* data;
static char text[100000];

static void Match(size_t letters) {
  int found = pcre2_match(code, (PCRE2_SPTR)text, letters, 0, 0, data, NULL);
  if (found < 1) exit(1);
}

static void Show(void) {
  printf("%zu %zu ", live >> 10, (size_t)pcre2_get_match_data_size(data));
}

int main(void) {
  int error;
  PCRE2_SIZE at;
  PCRE2_SPTR pattern = (PCRE2_SPTR) "(?:(a)|b)*$";
  code = pcre2_compile(pattern, PCRE2_ZERO_TERMINATED, 0, &error, &at, NULL);
  pcre2_general_context* memory = pcre2_general_context_create(Take, Give, NULL);
  live = 0;
  data = pcre2_match_data_create(4, memory);
  memset(text, 'a', sizeof(text));
  Match(10);
  Show();
  Match(sizeof(text));
  Show();
  for (int i = 0; i < 10; ++i) Match(10);
  Show();
  puts("");
  return 0;
}
C
gcc -O1 -o match match.c -Ipackage/usr/include "$library" \
  -Wl,-rpath,"$(dirname "$library")"
read -r first figure hard hard_figure later later_figure < <(./match)
echo "KiB held by a match data (by its own figure, bytes): after 10 letters $first" \
  "($figure), after 100,000 $hard ($hard_figure), after 10 again $later ($later_figure)"
((first < 100 && hard > 10000 && later == hard && figure == later_figure &&
  later_figure < 1000)) || { echo "not what was seen"; exit 1; }
