#!/bin/bash
# GLib 2.74 (Debian libglib2.0-0 2.74.6-2+deb12u*) under valgrind 3.19.0 (Debian
# 1:3.19.0-1) and heaptrack 1.4.0 (Debian libheaptrack 1.4.0-2), x86-64: the profiled
# program asks who profiles it.
#
# A good guess: two profilers of malloc count about the same calls of one program.
# Seen: GLib's slices ask at the start whether valgrind runs them, and are plain
# malloc and free if so. Only then. heaptrack sees pages of slices that are never
# freed. One tool tells of 100,000 blocks and no leak, the other of a ninth of the
# blocks and of memory that is all leaked. What massif measures is not what the
# program takes outside of it.
#
# Seen: 100,000 slices of 48 bytes made and freed, in thousands of blocks, malloc'ed
# and never freed: valgrind 100 0, heaptrack 11 11; heaptrack with
# G_SLICE=always-malloc 100 0.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset G_SLICE
apt-get -qq -o APT::Sandbox::User=root download libheaptrack=1.4.0-2 \
  libunwind8=1.6.2-3 valgrind=1:3.19.0-1 'libglib2.0-0=2.74.6-2+deb12u*' libpcre2-8-0
for file in *.deb; do dpkg-deb -x "$file" package; done
heaptrack=$(find "$PWD/package" -name libheaptrack_preload.so)
glib=$(find "$PWD/package" -name libglib-2.0.so.0)
export LD_LIBRARY_PATH=$(dirname "$glib")
export VALGRIND_LIB=$PWD/package/usr/libexec/valgrind
cat >slices.c <<'C'
#include <stddef.h>

void* g_slice_alloc(size_t size);
void g_slice_free1(size_t size, void* slice);

static void* slices[100000];

int main(void) {
  for (int i = 0; i < 100000; ++i) slices[i] = g_slice_alloc(48);
  for (int i = 0; i < 100000; ++i) g_slice_free1(48, slices[i]);
  return 0;
}
C
gcc -O1 -o slices slices.c "$glib"
Heaptrack() {  # blocks and those not freed, by the raw output's '+' and '-' lines
  rm -f raw
  DUMP_HEAPTRACK_OUTPUT=$PWD/raw LD_PRELOAD=$heaptrack ./slices
  local made freed
  made=$(grep -ac '^+' raw) freed=$(grep -ac '^-' raw)
  echo $((made / 1000)) $(((made - freed) / 1000))
}
package/usr/bin/valgrind --log-file=log ./slices
usage=$(sed 's/,//g' log |
  sed -n 's/.*total heap usage: \([0-9]*\) allocs \([0-9]*\) .*/\1 \2/p')
read -r made freed <<<"$usage"
valgrind="$((made / 1000)) $(((made - freed) / 1000))"
plain=$(Heaptrack)
malloc=$(G_SLICE=always-malloc Heaptrack)
echo "thousands of blocks, never freed: valgrind $valgrind, heaptrack $plain," \
  "heaptrack with always-malloc $malloc"
[[ $valgrind == "100 0" && $plain == "11 11" && $malloc == "100 0" ]] ||
  { echo "not what was seen"; exit 1; }
