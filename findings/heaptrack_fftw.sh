#!/bin/bash
# heaptrack 1.4.0 (Debian libheaptrack 1.4.0-2) beside FFTW 3.3.10 (Debian
# libfftw3-double3 3.3.10-1) and massif of valgrind 3.19.0 (Debian 1:3.19.0-1),
# x86-64: FFTW's arrays are in no figure of heaptrack's.
#
# A good guess: a profiler that stands before malloc, calloc, realloc, posix_memalign,
# valloc and aligned_alloc stands before all ways to get a block. Seen: heaptrack has
# no memalign, which is what fftw_malloc calls. The arrays of the program, its largest
# blocks, are in no line of the recording, and the free of an address that it does not
# know is dropped without a word. massif has them.
#
# Seen: MiB at the peak of one array of 16 MiB, by posix_memalign, aligned_alloc and
# fftw_malloc: heaptrack 16 16 0, massif 16 16 16.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libheaptrack=1.4.0-2 \
  libunwind8=1.6.2-3 valgrind=1:3.19.0-1 libfftw3-double3=3.3.10-1
for file in *.deb; do dpkg-deb -x "$file" package; done
heaptrack=$(find "$PWD/package" -name libheaptrack_preload.so)
fftw=$(find "$PWD/package" -name libfftw3.so.3)
export LD_LIBRARY_PATH=$(dirname "$fftw") VALGRIND_LIB=$PWD/package/usr/libexec/valgrind
cat >array.c <<'C'
#include <stdlib.h>
#include <string.h>

void* fftw_malloc(size_t size);
void fftw_free(void* array);

int main(int arguments, char** argument) {
  size_t size = (size_t)16 << 20;
  void* array = NULL;
  if (arguments != 2) return 1;
  if (argument[1][0] == 'p') {
    if (posix_memalign(&array, 64, size) != 0) return 1;
  } else {
    array = argument[1][0] == 'a' ? aligned_alloc(64, size) : fftw_malloc(size);
  }
  memset(array, 1, size);
  if (argument[1][0] == 'f') {
    fftw_free(array);
  } else {
    free(array);
  }
  return 0;
}
C
gcc -O0 -o array array.c "$fftw"
heaptrack_mib= massif_mib=
for way in posix_memalign aligned_alloc fftw_malloc; do
  rm -f raw
  DUMP_HEAPTRACK_OUTPUT=$PWD/raw LD_PRELOAD=$heaptrack ./array $way
  sum=0  # raw output: "+ SIZE ...", in base 16, for each block
  while read -r size; do sum=$((sum + 16#$size)); done < <(
    sed -n 's/^+ \([0-9a-f]*\) .*/\1/p' raw)
  heaptrack_mib+="$((sum >> 20)) "
  package/usr/bin/valgrind --tool=massif --massif-out-file=massif ./array $way \
    2>/dev/null
  peak=$(sed -n 's/^mem_heap_B=//p' massif | sort -n | tail -n 1)
  massif_mib+="$((peak >> 20)) "
done
echo "MiB by posix_memalign, aligned_alloc, fftw_malloc:" \
  "heaptrack $heaptrack_mib massif $massif_mib"
[[ $heaptrack_mib == "16 16 0 " && $massif_mib == "16 16 16 " ]] ||
  { echo "not what was seen"; exit 1; }
