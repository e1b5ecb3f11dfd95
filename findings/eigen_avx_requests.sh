#!/bin/bash
# Eigen 3.4.0 (Debian libeigen3-dev 3.4.0-4, x86-64): with AVX each array asks malloc
# for 32 bytes more, so an array of a page asks for more than a page.
#
# A good guess: a library that wants 32 aligned bytes asks by aligned_alloc, and an
# array of 512 doubles is a request of 4,096 bytes, whatever the processor. Seen: where
# 16 bytes are not enough, Eigen asks malloc for the size and 32 more, and keeps the
# block's address before the array. Each array whose size is a power of two, as those of
# images and transforms are, then is in the next class, or one page longer; and who
# counts requests sees another size by a compiler's flag.
#
# Seen: bytes asked for by arrays of 512 and 1,048,576 doubles: plain 4096 and 8388608;
# with -mavx 4128 and 8388640.
#
# Needs g++, a processor with AVX, apt-get (for the package's files; nothing is
# installed), dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libeigen3-dev=3.4.0-4
dpkg-deb -x ./*.deb package
cat >array.cc <<'CC'
#include <cstdio>
#include <cstdlib>

#include <Eigen/Core>

static size_t asked;

extern "C" void* __real_malloc(size_t bytes);
extern "C" void* __wrap_malloc(size_t bytes) {
  asked = bytes;
  return __real_malloc(bytes);
}

int main() {
  for (int elements : {512, 1 << 20}) {
    asked = 0;
    Eigen::VectorXd array(elements);
    array.setZero();
    volatile double first = array[0];
    (void)first;
    std::printf("%zu ", asked);
  }
  std::puts("");
}
CC
for flag in -msse2 -mavx; do
  g++ -O1 -fno-builtin-malloc $flag -o "array$flag" array.cc \
    -isystem package/usr/include/eigen3 -Wl,--wrap=malloc
done
read -r plain plain_large < <(./array-msse2)
read -r avx avx_large < <(./array-mavx)
echo "bytes asked of malloc for 4,096 and 8,388,608: plain $plain $plain_large," \
  "with -mavx $avx $avx_large"
((plain == 4096 && plain_large == 8388608 && avx == 4128 && avx_large == 8388640)) ||
  { echo "not what was seen"; exit 1; }
