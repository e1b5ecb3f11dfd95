#!/bin/bash
# zstd 1.5.4 (Debian libzstd1 1.5.4+dfsg2-5*, x86-64): a context that is kept, so that
# nothing is allocated, frees its tables and takes them again all 130 messages.
#
# A good guess: a ZSTD_CCtx is kept to save allocations, as its documentation says, and
# gives memory back only after a long row of small messages. Seen: the counter of calls
# for which the memory was too large goes up at each call, a large message's too. Past
# 128 the second small message in a row throws the tables away, and the next large one
# takes them again. So it goes on where each third message is large. Where each second
# one is, nothing is allocated.
#
# Seen: allocations in 1,000 messages after the first: each second one of 8 MiB, the
# others of 1,000 bytes: 0; each third one: 14, the larger 3.5 MiB.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libzstd1=1.5.4+dfsg2-5*' \
  'libzstd-dev=1.5.4+dfsg2-5*'
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libzstd.so.1)
cat >messages.c <<'C'
#define ZSTD_STATIC_LINKING_ONLY
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

static int calls;
static size_t largest;

static void* Take(void* nothing, size_t bytes) {
  (void)nothing;
  ++calls;
  if (bytes > largest) largest = bytes;
  return malloc(bytes);
}

static void Give(void* nothing, void* block) {
  (void)nothing;
  free(block);
}

int main(int arguments, char** argument) {
  if (arguments < 2) return 1;
  const int round = atoi(argument[1]);
  const size_t large = 8 << 20, small = 1000;
  ZSTD_CCtx* context = ZSTD_createCCtx_advanced((ZSTD_customMem){Take, Give, NULL});
  char* message = calloc(large, 1);
  size_t room = ZSTD_compressBound(large);
  char* compressed = malloc(room);
  for (int i = 0; i < 1000; ++i) {
    size_t bytes = i % round == 0 ? large : small;
    if (i == 1) calls = 0;
    if (ZSTD_isError(ZSTD_compressCCtx(context, compressed, room, message, bytes, 5)))
      return 1;
  }
  printf("%d %zu\n", calls, largest >> 10);
  return 0;
}
C
gcc -O1 -o messages messages.c -Ipackage/usr/include "$library" \
  -Wl,-rpath,"$(dirname "$library")"
read -r second kib < <(./messages 2)
read -r third _ < <(./messages 3)
echo "allocations of 1,000 messages by a kept context ($kib KiB): each second one" \
  "large: $second; each third: $third"
((second == 0 && third >= 10)) || { echo "not what was seen"; exit 1; }
