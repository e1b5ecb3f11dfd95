#!/bin/bash
# heaptrack 1.4.0 (Debian heaptrack 1.4.0-2) and ms_print of valgrind 3.19.0 (Debian
# 1:3.19.0-1), x86-64: the massif file that heaptrack writes lacks the peak, and
# massif's reader does not take it.
#
# A good guess: heaptrack_print -M FILE writes the recording in massif's form, for
# massif's tools, with the peak that the same command prints. Seen: a peak between two
# of the file's moments is in no line. The file has no head (desc, cmd, time_unit)
# either, and ms_print ends with an error.
#
# Seen: a block of 100 MiB, taken and freed: heaptrack_print tells a peak of 104.93M,
# the largest mem_heap_B in the file is 0; ms_print: Line 2: missing 'cmd' line.
#
# Needs gcc, perl, apt-get (for the packages' files; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download heaptrack=1.4.0-2 \
  libheaptrack=1.4.0-2 libunwind8=1.6.2-3 valgrind=1:3.19.0-1 \
  libboost-filesystem1.74.0 libboost-iostreams1.74.0 libboost-program-options1.74.0
for file in *.deb; do dpkg-deb -x "$file" package; done
cat >peak.c <<'C'
#include <stdlib.h>

int main(void) {
  void* volatile block = malloc((size_t)100 << 20);
  free(block);
  return 0;
}
C
gcc -O0 -o peak peak.c
export LD_LIBRARY_PATH=$PWD/package/usr/lib/x86_64-linux-gnu
tools=$PWD/package/usr/lib/heaptrack
DUMP_HEAPTRACK_OUTPUT=$PWD/raw LD_PRELOAD=$tools/libheaptrack_preload.so ./peak
"$tools/libexec/heaptrack_interpret" <raw 2>/dev/null | gzip >recorded.gz
told=$(package/usr/bin/heaptrack_print -f recorded.gz -M massif |
  sed -n 's/^peak heap memory consumption: //p')
written=$(sed -n 's/^mem_heap_B=//p' massif | sort -n | tail -n 1)
status=0
read_by=$(package/usr/bin/ms_print massif 2>&1 >/dev/null) || status=$?
echo "peak told: $told, in the massif file: $written, ms_print ($status): $read_by"
[[ $told == 104.93M ]] && ((written < 1000000 && status != 0)) ||
  { echo "not what was seen"; exit 1; }
