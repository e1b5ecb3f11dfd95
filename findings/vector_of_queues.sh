#!/bin/bash
# libstdc++ 12.2.0 and libc++ 14.0.6 (Debian, x86-64): a vector of queues that grows
# copies each queue with libstdc++, and moves it with libc++.
#
# A good guess: a std::vector that grows moves its elements, and a container is moved by
# its pointers. Seen: libstdc++'s deque allocates when it is moved, since even an empty
# one has a map and a node of 512 bytes. So its move may throw, and a std::vector has to
# copy. For deques themselves libstdc++ has an exception: they are moved as bytes. What
# has a deque inside, as std::queue and std::stack and one's own structures, is copied
# with all its elements at each growth.
#
# Seen: allocations of the 1,025th element of a vector of deques, of queues and of
# lists, each with 1,000 ints: libstdc++ 3, 9219, 1; libc++ 1, 1, 1.
#
# Needs g++ 12, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libc++-14-dev=1:14.0.6-12 \
  libc++1-14=1:14.0.6-12 libc++abi1-14=1:14.0.6-12 libunwind-14=1:14.0.6-12
for file in *.deb; do dpkg-deb -x "$file" package; done
llvm=$PWD/package/usr/lib/llvm-14
cat >grow.cc <<'CC'
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <list>
#include <new>
#include <queue>
#include <vector>

static long calls;

void* operator new(std::size_t bytes) {
  ++calls;
  void* block = std::malloc(bytes);
  if (block == nullptr) std::abort();
  return block;
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

template <class Element>
long Grow(const Element& element) {
  std::vector<Element> all;
  all.reserve(1024);
  for (int i = 0; i < 1024; ++i) all.push_back(element);
  long before = calls;
  all.emplace_back();
  return calls - before;
}

int main() {
  std::deque<int> numbers(1000, 1);
  long deque = Grow(numbers), queue = Grow(std::queue<int>(numbers));
  std::printf("%ld %ld %ld\n", deque, queue, Grow(std::list<int>(1000, 1)));
}
CC
g++ -std=c++17 -O1 -o gnu grow.cc
g++ -std=c++17 -O1 -nostdinc++ -nodefaultlibs -isystem "$llvm/include/c++/v1" -o llvm \
  grow.cc "$llvm"/lib/libc++.so.1 "$llvm"/lib/libc++abi.so.1 -lm -lc \
  -lgcc_s -lgcc -Wl,-rpath-link,"$PWD/package/usr/lib/x86_64-linux-gnu"
libraries=$llvm/lib:$PWD/package/usr/lib/x86_64-linux-gnu
read -r deque queue list < <(./gnu)
read -r llvm_deque llvm_queue llvm_list < <(LD_LIBRARY_PATH=$libraries ./llvm)
echo "allocations of one growth, deques, queues and lists: libstdc++" \
  "$deque $queue $list, libc++ $llvm_deque $llvm_queue $llvm_list"
((deque < 10 && queue > 5000 && list < 10 && llvm_deque < 10 && llvm_queue < 10)) ||
  { echo "not what was seen"; exit 1; }
