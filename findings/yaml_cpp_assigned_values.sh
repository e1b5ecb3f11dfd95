#!/bin/bash
# yaml-cpp 0.7.0 (Debian libyaml-cpp0.7 0.7.0+dfsg-8+b1, x86-64): a node keeps each
# value that it was ever given, and removed keys.
#
# A good guess: node["a"] = 1 replaces the value, and frees the old one. Seen: the
# assignment of a number makes a node, and the document takes over that node's memory.
# The document frees all its nodes at once, after the last handle is gone. A program
# with its state in a YAML::Node grows by each number that it writes there, while the
# node has one element. remove() frees nothing, and the key costs again.
#
# Seen: KiB of malloc by 100,000 assignments to one key 45314, by as many of a remove
# and an assignment 114340, by reading the key as often 0; each node has 1 element.
#
# Needs g++, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libyaml-cpp0.7=0.7.0+dfsg-8+b1 \
  libyaml-cpp-dev=0.7.0+dfsg-8+b1
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >assign.cc <<'CC'
#include <malloc.h>
#include <yaml-cpp/yaml.h>

#include <cstdio>

static size_t Used() {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

template <typename Change>
static void Run(Change change) {
  size_t before = Used();
  YAML::Node node;
  node["a"] = 0;
  for (int i = 0; i < 100000; ++i) change(node, i);
  std::printf("%zu %zu ", (Used() - before) >> 10, node.size());
}

int main() {
  Run([](YAML::Node& node, int i) { node["a"] = i; });
  Run([](YAML::Node& node, int i) {
    node.remove("a");
    node["a"] = i;
  });
  Run([](YAML::Node& node, int i) {
    if (node["a"].as<int>() == i + 1) std::printf("wrong ");
  });
  return 0;
}
CC
g++ -std=c++17 -O1 -o assign assign.cc -Ipackage/usr/include \
  "$libraries/libyaml-cpp.so.0.7" -Wl,-rpath,"$libraries"
read -r set set_size removed removed_size got got_size <<<"$(env -u LD_PRELOAD ./assign)"
echo "KiB of malloc and elements after 100,000 times: assigned $set $set_size," \
  "removed and assigned $removed $removed_size, read $got $got_size"
((set > 40000 && removed > 100000 && got < 100)) &&
  ((set_size == 1 && removed_size == 1 && got_size == 1)) ||
  { echo "not what was seen"; exit 1; }
