#!/bin/bash
# msgpack-cxx 4.1.3 (Debian libmsgpack-cxx-dev 4.1.3-1, x86-64): a message that is the
# number 7, kept as it was unpacked, takes 8 KiB.
#
# A good guess: MessagePack is small, and an object of msgpack::unpack takes what its
# values need, which is no memory at all for a number and a few dozen bytes for an array
# of three. Seen: each result has a zone of its own, and a zone takes 8,192 bytes from
# malloc before anything is in it. 10,000 results that wait in a queue, of one byte
# each, are 79 MiB. Results that are unpacked into a common msgpack::zone share it.
#
# Seen: bytes of malloc for each of 1,000 results: a number 8272, an array of three
# numbers 8271; in a common zone 0 and 65.
#
# Needs g++, apt-get (for the package's files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libmsgpack-cxx-dev=4.1.3-1
dpkg-deb -x ./*.deb package
cat >zone.cc <<'CC'
#include <cstdio>
#include <vector>

#include <malloc.h>
#include <msgpack.hpp>

static long Used() {
  struct mallinfo2 info = mallinfo2();
  return static_cast<long>(info.uordblks + info.hblkhd);
}

template <typename Value>
static void Show(const Value& value) {
  msgpack::sbuffer bytes;
  msgpack::pack(bytes, value);
  std::vector<msgpack::object_handle> handles;
  std::vector<msgpack::object> objects;
  handles.reserve(1000);
  objects.reserve(1000);
  long before = Used();
  for (int i = 0; i < 1000; ++i)
    handles.push_back(msgpack::unpack(bytes.data(), bytes.size()));
  long apart = Used() - before;
  msgpack::zone zone;
  before = Used();
  for (int i = 0; i < 1000; ++i)
    objects.push_back(msgpack::unpack(zone, bytes.data(), bytes.size()));
  std::printf("%ld %ld ", apart / 1000, (Used() - before) / 1000);
}

int main() {
  Show(7);
  Show(std::vector<int>{1, 2, 3});
  return 0;
}
CC
g++ -O0 -std=c++17 -DMSGPACK_NO_BOOST -isystem package/usr/include -o zone zone.cc
read -r number number_common array array_common <<<"$(env -u LD_PRELOAD ./zone)"
echo "bytes each, apart and in a common zone: number $number $number_common, array of" \
  "three $array $array_common"
((number > 8000 && array > 8000 && number_common < 200 && array_common < 200)) ||
  { echo "not what was seen"; exit 1; }
