#!/bin/bash
# glibc 2.36 (Debian libc6 2.36-9+deb12u*, x86-64) and meson 1.6.1 (PyPI):
# MALLOC_PERTURB_ does not reach the blocks that a program uses again.
#
# A good guess: MALLOC_PERTURB_ fills each block that malloc gives and each block
# that free takes, as its manual says. meson sets it for each test for this reason.
# Seen: the thread's cache (tcache) hands a freed block of up to 1,032 bytes out
# again as it was. Neither free nor malloc fills it. A read of memory that was never
# written sees the last owner's bytes there, and a test may pass by them. Blocks
# above the cache's sizes are filled, and with tcache_count=0 all are.
#
# Seen: the middle byte of a new block, the same block malloc'ed again after its
# byte was 11 and it was freed, the same for 4096 bytes, MALLOC_PERTURB_=165 (5a is
# its complement): 5a 11 5a; without the cache 5a 5a 5a. In a test of meson's the
# second is 11, too, and the other two are alike and are not.
#
# Needs gcc, python3 with venv, apt-get (for the package's file; nothing is
# installed), dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset GLIBC_TUNABLES MALLOC_PERTURB_
apt-get -qq -o APT::Sandbox::User=root download 'libc6=2.36-9+deb12u*'
dpkg-deb -x libc6_*.deb package
libraries=$(dirname "$(find "$PWD/package" -name libc.so.6)")
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install meson==1.6.1 ninja==1.11.1.3
mkdir project
cat >project/blocks.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char Middle(size_t size) {
  volatile unsigned char* block = malloc(size);
  unsigned char middle = block[size / 2];
  memset((void*)block, 0x11, size);
  free((void*)block);
  return middle;
}

int main(void) {
  unsigned char new = Middle(64), again = Middle(64);
  free(malloc(2000));
  Middle(4096);
  printf("middle %02x %02x %02x\n", new, again, Middle(4096));
  return 0;
}
C
cat >project/meson.build <<'MESON'
project('blocks', 'c', default_options: ['optimization=0'])
blocks = executable('blocks', 'blocks.c')
test('blocks', find_program('run.sh'), args: [blocks])
MESON
cat >project/run.sh <<SH
#!/bin/sh
exec "$libraries/ld-linux-x86-64.so.2" --library-path "$libraries" "\$1"
SH
chmod +x project/run.sh
PATH=$PWD/venv/bin:$PATH
meson setup project build >/dev/null
meson compile -C build >/dev/null
cached=$(MALLOC_PERTURB_=165 project/run.sh build/blocks)
uncached=$(GLIBC_TUNABLES=glibc.malloc.tcache_count=0 MALLOC_PERTURB_=165 \
  project/run.sh build/blocks)
meson test -C build >/dev/null
tested=$(grep -h '^middle' build/meson-logs/testlog.txt)
echo "with the cache: $cached; without: $uncached; in meson's test: $tested"
read -r _ new again large <<<"$tested"
[[ $cached == "middle 5a 11 5a" && $uncached == "middle 5a 5a 5a" &&
  $again == 11 && $new == "$large" ]] || { echo "not what was seen"; exit 1; }
