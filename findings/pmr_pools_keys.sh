#!/bin/bash
# libstdc++ 12 (Debian libstdc++-12-dev 12.2.0, glibc 2.36, x86-64): the 1,025th
# std::pmr::synchronized_pool_resource of a process throws, with its memory free.
#
# A good guess: a pool resource is an object in memory, so there can be as many as
# memory holds; one for each connection or document, say. Seen: each takes a pthread key
# for the pools of its threads, and glibc has 1,024 keys for the process. The
# constructor then throws std::system_error "Resource temporarily unavailable", and
# every pthread_key_create of any library fails too, until a resource is destroyed.
# unsynchronized_pool_resource takes none.
#
# Seen: synchronized resources until the error 1024, pthread_key_create then 11
# (EAGAIN); unsynchronized 5000.
#
# Needs g++ 12. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >pools.cc <<'CC'
#include <pthread.h>

#include <cstdio>
#include <memory>
#include <memory_resource>
#include <system_error>
#include <vector>

template <class Pool>
size_t Make(std::vector<std::unique_ptr<std::pmr::memory_resource>>& pools) {
  try {
    while (pools.size() < 5000) pools.push_back(std::make_unique<Pool>());
  } catch (const std::system_error&) {
  }
  return pools.size();
}

int main() {
  std::vector<std::unique_ptr<std::pmr::memory_resource>> plain, locked;
  size_t many = Make<std::pmr::unsynchronized_pool_resource>(plain);
  size_t few = Make<std::pmr::synchronized_pool_resource>(locked);
  pthread_key_t key;
  int error = pthread_key_create(&key, nullptr);
  std::printf("%zu %zu %d\n", many, few, error);
}
CC
g++ -std=c++17 -O1 -pthread -o pools pools.cc
read -r plain locked error < <(./pools)
echo "unsynchronized resources: $plain, synchronized ones until the error: $locked;" \
  "pthread_key_create then: $error"
((plain == 5000 && locked > 1000 && locked <= 1024 && error == 11)) ||
  { echo "not what was seen"; exit 1; }
