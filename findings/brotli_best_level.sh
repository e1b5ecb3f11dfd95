#!/bin/bash
# Brotli 1.0.9 (Debian libbrotli1 1.0.9-2+deb12u1, x86-64): for ten bytes level 9 asks
# for 32 MiB, and the best level, 11, for less than one.
#
# A good guess: better levels take more memory, and ten bytes take little at each. Seen:
# levels 5 to 9 take a table made for the window and the level, whatever is to be
# compressed, twice as large or more by each level. Levels 10 and 11 make theirs by the
# length, if all of the input comes with the call that finishes. A flush before the end,
# as a server makes for each part of an answer, takes this away: then 11 asks for 32
# MiB, too. BROTLI_PARAM_SIZE_HINT changes neither. Few of the pages are touched, so RSS
# does not show them, and a heap profile and a limit of addresses do.
#
# Seen: KiB of the allocator for ten bytes at levels 5, 6, 7, 8, 9 and 11: at once 1087
# 2111 8287 16479 32863 709; with a flush 1083 2107 8283 16475 32863 33481.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libbrotli1=1.0.9-2+deb12u*' \
  'libbrotli-dev=1.0.9-2+deb12u*'
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >level.c <<'C'
#include <brotli/encode.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static size_t now, peak;

static void* Allocate(void* user, size_t size) {
  (void)user;
  void* block = malloc(size);
  now += malloc_usable_size(block);
  if (now > peak) peak = now;
  return block;
}

static void Free(void* user, void* block) {
  (void)user;
  now -= malloc_usable_size(block);
  free(block);
}

static void Compress(int level, int flush) {
  const uint8_t text[] = "ten bytes", *in = text;
  uint8_t buffer[1000], *out = buffer;
  size_t left = sizeof(text), room = sizeof(buffer);
  now = peak = 0;
  BrotliEncoderState* state = BrotliEncoderCreateInstance(Allocate, Free, NULL);
  BrotliEncoderSetParameter(state, BROTLI_PARAM_QUALITY, level);
  BrotliEncoderSetParameter(state, BROTLI_PARAM_SIZE_HINT, sizeof(text));
  if (flush) {
    BrotliEncoderCompressStream(state, BROTLI_OPERATION_FLUSH, &left, &in, &room, &out,
                                NULL);
  }
  BrotliEncoderCompressStream(state, BROTLI_OPERATION_FINISH, &left, &in, &room, &out,
                              NULL);
  if (!BrotliEncoderIsFinished(state)) printf("unfinished ");
  printf("%zu ", peak >> 10);
  BrotliEncoderDestroyInstance(state);
}

int main(void) {
  const int levels[] = {5, 6, 7, 8, 9, 11};
  for (int flush = 0; flush < 2; ++flush) {
    for (int i = 0; i < 6; ++i) Compress(levels[i], flush);
  }
  printf("\n");
  return 0;
}
C
gcc -O1 -I package/usr/include -o level level.c "$libraries"/libbrotlienc.so.1 \
  -Wl,-rpath-link,"$libraries"
seen=$(LD_LIBRARY_PATH=$libraries ./level)
echo "KiB for ten bytes at levels 5, 6, 7, 8, 9 and 11, at once and with a flush: $seen"
read -r five _ _ _ nine best flushed_five _ _ _ flushed_nine flushed_best <<<"$seen"
((five < 1200 && nine > 32000 && best < 1000)) &&
  ((flushed_five < 1200 && flushed_nine > 32000 && flushed_best > 32000)) ||
  { echo "not what was seen"; exit 1; }
