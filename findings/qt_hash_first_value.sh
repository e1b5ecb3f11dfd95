#!/bin/bash
# Qt 6.4.2 (Debian libqt6core6, x86-64): a QHash with one value has allocated room for
# 48.
#
# A good guess: a hash table takes its buckets, and memory for the values that are in
# it, as Qt 5's did and std::unordered_map does; or it starts with a few places. Seen:
# values lie in spans of 128 buckets, and the first value of a span allocates 48 places
# of the value's full size at once, and then 80. A QHash in each of many objects, for
# the one or two properties that an object may have, is mostly places. QSet is the
# same. squeeze() ends at the 48 places, and only clear() frees them.
#
# Seen: bytes of malloc for one value of 1 KiB: QHash 49,568, after 48 values 49,568,
# after all but one were removed and squeeze() 49,728, after clear() 368,
# std::unordered_map 1,168; for one number with a number: 400 and 144.
#
# Needs g++, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'qt6-base-dev=6.4.2*' \
  'libqt6core6=6.4.2*' libicu72 libdouble-conversion3 libb2-1 libpcre2-16-0 \
  libglib2.0-0
for file in *.deb; do dpkg-deb -x "$file" package; done
headers=package/usr/include/x86_64-linux-gnu/qt6
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >hash.cc <<'CC'
#include <cstdio>
#include <unordered_map>

#include <malloc.h>
#include <QtCore/QHash>

struct Value {
  char bytes[1024];
};

static long start;

static long Used() {
  struct mallinfo2 info = mallinfo2();
  return static_cast<long>(info.uordblks + info.hblkhd);
}

static void Show() { std::printf("%ld ", Used() - start); }

int main() {
  std::printf(" ");
  start = Used();
  QHash<int, Value> values;
  values.insert(0, Value());
  Show();
  for (int i = 1; i < 48; ++i) values.insert(i, Value());
  Show();
  for (int i = 1; i < 48; ++i) values.remove(i);
  values.squeeze();
  Show();
  values.clear();
  Show();
  start = Used();
  std::unordered_map<int, Value> standard;
  standard.emplace(0, Value());
  Show();
  start = Used();
  QHash<int, int> numbers;
  numbers.insert(0, 0);
  Show();
  start = Used();
  std::unordered_map<int, int> standard_numbers;
  standard_numbers.emplace(0, 0);
  Show();
  std::printf("\n");
  return 0;
}
CC
g++ -O1 -std=c++17 -fPIC -isystem "$headers" -isystem "$headers/QtCore" \
  -o hash hash.cc "$libraries/libQt6Core.so.6" -Wl,--allow-shlib-undefined
read -r one all squeezed cleared standard number standard_number \
  < <(env -u LD_PRELOAD LD_LIBRARY_PATH="$libraries" ./hash)
echo "bytes of one value of 1 KiB: QHash $one, with 48 $all, squeezed $squeezed," \
  "cleared $cleared, std::unordered_map $standard; of a number $number and" \
  "$standard_number"
((one > 48 * 1024 && all == one && squeezed > 48 * 1024 && cleared < 1000)) &&
  ((standard < 1500 && number > 350 && standard_number < 200)) ||
  { echo "not what was seen"; exit 1; }
