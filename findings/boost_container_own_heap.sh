#!/bin/bash
# Boost.Container 1.74 (Debian libboost-container1.74.0 1.74.0+ds1-21, x86-64): the
# containers with boost::container::allocator or adaptive_pool never call malloc.
#
# A good guess: an allocator of a container library arranges what it gets from malloc or
# operator new, so a preloaded malloc, a profiler and mallinfo have it. Seen: the
# library has a whole malloc of its own inside, which asks the kernel itself. What lies
# in it is in RSS alone. The default allocator of the same containers is operator new.
#
# Seen: MiB by mallinfo2 and MiB in memory: a list of a million numbers with
# adaptive_pool 0 26, with the default 30 30; a vector of ten million with allocator 0
# 38, with the default 42 38.
#
# Needs g++, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libboost-container1.74.0=1.74.0+ds1-21 \
  libboost1.74-dev=1.74.0+ds1-21
dpkg-deb -x libboost-container1.74.0*.deb package
boost=./usr/include/boost
dpkg-deb --fsys-tarfile libboost1.74-dev*.deb | tar -x -C package \
  "$boost"/{assert,config,cstdint,static_assert}.hpp \
  "$boost"/{config,container,core,detail,intrusive,move}
library=$(find "$PWD/package" -name 'libboost_container.so.*')
cat >heap.cc <<'CC'
#include <cstdio>
#include <cstdlib>

#include <boost/container/adaptive_pool.hpp>
#include <boost/container/allocator.hpp>
#include <boost/container/list.hpp>
#include <boost/container/vector.hpp>
#include <malloc.h>

namespace bc = boost::container;

static char output[4096];

static long Used() {
  struct mallinfo2 info = mallinfo2();
  return static_cast<long>(info.uordblks + info.hblkhd);
}

static long Resident() {
  long pages = 0;
  FILE* statm = std::fopen("/proc/self/statm", "r");
  if (statm == nullptr || std::fscanf(statm, "%*d %ld", &pages) != 1) std::exit(1);
  std::fclose(statm);
  return pages * 4096;
}

template <typename Container>
static void Show(int count) {
  Resident();
  long used = Used(), resident = Resident();
  Container container;
  for (int i = 0; i < count; ++i) container.push_back(i);
  std::printf("%ld %ld ", (Used() - used) >> 20, (Resident() - resident) >> 20);
}

int main(int arguments, char**) {
  std::setvbuf(stdout, output, _IOFBF, sizeof(output));
  if (arguments > 1) {
    Show<bc::list<int, bc::adaptive_pool<int>>>(1000000);
    Show<bc::vector<int, bc::allocator<int>>>(10000000);
  } else {
    Show<bc::list<int>>(1000000);
    Show<bc::vector<int>>(10000000);
  }
  return 0;
}
CC
g++ -O1 -std=c++17 -o heap heap.cc -isystem package/usr/include "$library" \
  -Wl,-rpath,"$(dirname "$library")"
own=$(env -u LD_PRELOAD ./heap own) usual=$(env -u LD_PRELOAD ./heap)
echo "MiB by mallinfo2 and in memory, list and vector: own heap ${own% }, default" \
  "${usual% }"
read -r list list_memory vector vector_memory <<<"$own"
read -r usual_list _ usual_vector _ <<<"$usual"
((list == 0 && list_memory > 20 && vector == 0 && vector_memory > 30)) &&
  ((usual_list > 20 && usual_vector > 30)) || { echo "not what was seen"; exit 1; }
