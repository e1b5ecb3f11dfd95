#!/bin/bash
# protobuf 3.21.12 (Debian libprotobuf-dev 3.21.12-3*, x86-64): the text of a message on
# an arena is not on the arena, nor in its figures.
#
# A good guess: all of a message that an arena made lies in the arena's blocks, so
# Arena::SpaceAllocated is what it takes, and the arena's end frees some large blocks.
# Seen: string and bytes fields are std::string, whose object is on the arena, and whose
# text is a block of malloc each. The arena keeps a list of them, to call each
# destructor at its end. A service whose messages are mostly text has its memory
# outside.
#
# Seen: 1,000 texts of 64 KiB: SpaceAllocated 64 KiB or so, malloc's blocks 62 MiB.
#
# Needs g++, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libprotobuf-dev=3.21.12-3*' \
  'libprotobuf32=3.21.12-3*' 'libprotoc32=3.21.12-3*' 'protobuf-compiler=3.21.12-3*'
for file in *.deb; do dpkg-deb -x "$file" package; done
export LD_LIBRARY_PATH=$PWD/package/usr/lib/x86_64-linux-gnu
cat >texts.proto <<'PROTO'
syntax = "proto3";
option cc_enable_arenas = true;
message Texts { repeated string text = 1; }
PROTO
package/usr/bin/protoc --cpp_out=. texts.proto
cat >arena.cc <<'CC'
#include <malloc.h>

#include <cstdio>
#include <string>

#include "texts.pb.h"

int main() {
  google::protobuf::Arena arena;
  auto* message = google::protobuf::Arena::CreateMessage<Texts>(&arena);
  size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  for (int i = 0; i < 1000; ++i) message->add_text()->assign(64 << 10, 'x');
  size_t taken = mallinfo2().uordblks + mallinfo2().hblkhd - before;
  std::printf("%zu %zu\n", static_cast<size_t>(arena.SpaceAllocated()) >> 10,
              taken >> 10);
}
CC
g++ -std=c++17 -O0 -w -o arena arena.cc texts.pb.cc -isystem package/usr/include \
  -L"$LD_LIBRARY_PATH" -lprotobuf -pthread
read -r arena taken < <(./arena)
echo "KiB of 1,000 texts of 64 KiB: by the arena $arena, by malloc $taken"
((arena < 1000 && taken >= 62000)) || { echo "not what was seen"; exit 1; }
