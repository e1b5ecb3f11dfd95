#!/bin/bash
# libevent 2.1.12 (Debian libevent-core-2.1-7, x86-64): a buffer of 1 MiB takes 2 MiB,
# and its last ten bytes keep them.
#
# A good guess: evbuffer_add of 1 MiB allocates 1 MiB and a header, evbuffer_drain gives
# back what was read, and evbuffer_expand and evbuffer_pullup put the rest in place.
# Seen: a chunk is a power of two with the header in it, so the data of a power of two
# takes twice its size, and 48 bytes less take half of that. What is left of a chunk
# keeps the whole. Moving ten bytes to another buffer moves no memory, and buffers that
# are put together by evbuffer_add_buffer stay apart, a KiB for each ten bytes, until
# evbuffer_pullup.
#
# Seen: bytes of malloc for a buffer of 1 byte 1,184, of 1 MiB less 48 bytes 1,052,816,
# of 1 MiB 2,101,392, after all but ten were drained 2,101,392, after pullup 2,101,392;
# for 10,000 bytes put together from ten each 1,041,008, after pullup about 25,000.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libevent-dev=2.1.12-stable-8*' \
  'libevent-core-2.1-7=2.1.12-stable-8*'
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libevent_core-2.1.so.7)
cat >drain.c <<'C'
#include <event2/buffer.h>
#include <malloc.h>
#include <stdio.h>

static const size_t kMib = 1 << 20;
static char bytes[1 << 20];
static size_t start;

static size_t Used(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

static void Show(void) { printf("%zu ", Used() - start); }

static struct evbuffer* Filled(size_t size) {
  start = Used();
  struct evbuffer* buffer = evbuffer_new();
  evbuffer_add(buffer, bytes, size);
  Show();
  return buffer;
}

int main(void) {
  printf(" ");
  evbuffer_free(evbuffer_new());
  Filled(1);
  Filled(kMib - 48);
  struct evbuffer* buffer = Filled(kMib);
  evbuffer_drain(buffer, kMib - 10);
  Show();
  evbuffer_expand(buffer, 10);
  evbuffer_pullup(buffer, -1);
  Show();
  start = Used();
  buffer = evbuffer_new();
  for (int i = 0; i < 1000; ++i) {
    struct evbuffer* part = evbuffer_new();
    evbuffer_add(part, bytes, 10);
    evbuffer_add_buffer(buffer, part);
    evbuffer_free(part);
  }
  Show();
  evbuffer_pullup(buffer, -1);
  Show();
  puts("");
  return 0;
}
C
gcc -O1 -o drain drain.c -Ipackage/usr/include \
  -Ipackage/usr/include/x86_64-linux-gnu "$library" -Wl,-rpath,"$(dirname "$library")"
read -r one less mib drained pulled parts together < <(env -u LD_PRELOAD ./drain)
echo "bytes of 1 byte $one, 1 MiB less 48 bytes $less, 1 MiB $mib, drained $drained," \
  "pulled up $pulled; 10,000 in parts $parts, pulled up $together"
((one > 1000 && less < 1100000 && mib > 2000000 && drained == mib && pulled == mib)) &&
  ((parts > 1000000 && together < 50000)) || { echo "not what was seen"; exit 1; }
