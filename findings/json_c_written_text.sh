#!/bin/bash
# json-c 0.16 (Debian libjson-c5 0.16-2, x86-64): to write an object to a file makes
# the object more than twice as large, until it is freed.
#
# A good guess: json_object_to_file writes and leaves the object as it was; that
# json_object_to_json_string keeps its text in the object is known, as it returns
# the text. Seen: json_object_to_file makes the same text, and the object keeps it
# without anybody who could read it. The text's buffer doubles, so it takes up to
# twice the file. Each inner object that is written keeps a text of its own beside.
# The text goes with its object.
#
# Seen: MiB of malloc with an array of 40 texts of 1 MiB: 40; after the array was
# written 104; after each text was written, too, 144; after all was freed 0.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libjson-c5=0.16-2 libjson-c-dev=0.16-2
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libjson-c.so.5)
cat >write.c <<'C'
#include <json-c/json.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

static void ShowMib(void) {
  struct mallinfo2 info = mallinfo2();
  printf("%zu ", (info.uordblks + info.hblkhd) >> 20);
}

int main(void) {
  static char text[(1 << 20) + 1];
  memset(text, 'a', sizeof(text) - 1);
  json_object* array = json_object_new_array();
  for (int i = 0; i < 40; ++i)
    json_object_array_add(array, json_object_new_string(text));
  ShowMib();
  if (json_object_to_file("all.json", array) != 0) return 1;
  ShowMib();
  for (int i = 0; i < 40; ++i) {
    json_object* one = json_object_array_get_idx(array, i);
    if (json_object_to_file("one.json", one) != 0) return 1;
  }
  ShowMib();
  json_object_put(array);
  ShowMib();
  return 0;
}
C
gcc -O0 -o write write.c -Ipackage/usr/include "$library" \
  -Wl,-rpath,"$(dirname "$library")"
read -r built written parts freed <<<"$(env -u LD_PRELOAD ./write)"
echo "MiB of malloc: built $built, written $written, parts written $parts, freed $freed"
((built < 45 && written > 80 && parts > 120 && freed < 5)) ||
  { echo "not what was seen"; exit 1; }
