#!/bin/bash
# Armadillo 11.4.2 (Debian libarmadillo-dev 1:11.4.2+dfsg-1, x86-64): one new element of
# a sparse matrix makes the whole matrix nearly four times as large, and it stays so.
#
# A good guess: a new element moves the elements behind it, as in any matrix by columns,
# and takes its 16 bytes. Seen: the first element that is written where none was copies
# all elements into a std::map, a node of 64 bytes each. The map stays beside the
# columns after sync() and after sums have read the matrix. A product by a number in
# place drops the map. An element that was there already is written in its place.
#
# Seen: a diagonal of a million numbers: MiB of malloc as built 22, one element changed
# 22, one new element 84, after a sum 83, after m *= 2 22.
#
# Needs g++, apt-get (for the package's files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libarmadillo-dev=1:11.4.2+dfsg-1
dpkg-deb -x ./*.deb package
cat >element.cc <<'CC'
#define ARMA_DONT_USE_WRAPPER
#define ARMA_DONT_USE_BLAS
#define ARMA_DONT_USE_LAPACK
#define ARMA_DONT_USE_SUPERLU
#include <cstdio>

#include <armadillo>
#include <malloc.h>

static void ShowMib() {
  struct mallinfo2 info = mallinfo2();
  std::printf("%zu ", (info.uordblks + info.hblkhd) >> 20);
}

int main() {
  const arma::uword side = 1000000;
  arma::umat places(2, side);
  arma::vec values(side);
  for (arma::uword i = 0; i < side; ++i) {
    places(0, i) = places(1, i) = i;
    values(i) = 1;
  }
  arma::sp_mat matrix(places, values, side, side, false, false);
  places.reset();
  values.reset();
  ShowMib();
  matrix(7, 7) = 2;
  ShowMib();
  matrix(7, 8) = 2;
  ShowMib();
  matrix.sync();
  if (arma::accu(matrix) != side + 3) return 1;
  ShowMib();
  matrix *= 2;
  ShowMib();
  return 0;
}
CC
g++ -O1 -std=c++17 -o element element.cc -isystem package/usr/include
read -r built changed added summed scaled <<<"$(env -u LD_PRELOAD ./element)"
echo "MiB of malloc: built $built, element changed $changed, element added $added," \
  "after a sum $summed, after a product $scaled"
((built < 30 && changed == built && added > 70 && summed > 70 && scaled < 30)) ||
  { echo "not what was seen"; exit 1; }
