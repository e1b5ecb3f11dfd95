#!/bin/bash
# GLib 2.74.6 (Debian libglib2.0-0 2.74.6-2+deb12u*, x86-64): one key of more than 32
# bits makes a hash table of numbers two and a half times as large, for good.
#
# A good guess: a GHashTable has pointers, so a key is 8 bytes whatever number it holds,
# and a table's memory follows from its count. Seen: as long as each key and value fits
# in 32 bits, the table has 4 bytes for it. A table whose values are its keys, as
# g_hash_table_add leaves it, has one array for both. The first value that differs from
# its key makes the second array, the first large number the arrays of 8 bytes.
# g_hash_table_remove and g_hash_table_remove_all do not bring the small form back. So
# a set of indices is small, and one pointer among them, or one index of 2^32, is not
# 16 bytes.
#
# Seen: KiB of malloc for a set of 700,000 numbers 8206, one value that differs 12306,
# one key of 2^32 20498, after both were removed 20498, emptied and filled anew 20500.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libglib2.0-0=2.74.6-2+deb12u*' \
  'libglib2.0-dev=2.74.6-2+deb12u*' libpcre2-8-0
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >key.c <<'C'
#include <glib.h>
#include <malloc.h>
#include <stdio.h>

static size_t before;

static size_t Used(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

static void ShowKib(void) { printf("%zu ", (Used() - before) >> 10); }

static void Fill(GHashTable* table) {
  for (int i = 1; i <= 700000; ++i) g_hash_table_add(table, GINT_TO_POINTER(i));
}

int main(void) {
  static char output[4096];
  setvbuf(stdout, output, _IOFBF, sizeof(output));
  GHashTable* table = g_hash_table_new(NULL, NULL);
  before = Used();
  Fill(table);
  ShowKib();
  g_hash_table_insert(table, GINT_TO_POINTER(5), GINT_TO_POINTER(6));
  ShowKib();
  g_hash_table_add(table, GSIZE_TO_POINTER((gsize)1 << 32));
  ShowKib();
  g_hash_table_remove(table, GSIZE_TO_POINTER((gsize)1 << 32));
  g_hash_table_remove(table, GINT_TO_POINTER(5));
  ShowKib();
  g_hash_table_remove_all(table);
  Fill(table);
  ShowKib();
  return 0;
}
C
gcc -O1 -o key key.c -Ipackage/usr/include/glib-2.0 \
  -I"$libraries/glib-2.0/include" "$libraries/libglib-2.0.so.0" \
  -Wl,-rpath,"$libraries" -Wl,-rpath-link,"$libraries"
read -r set value key removed again <<<"$(env -u LD_PRELOAD ./key)"
echo "KiB of malloc: set $set, one value differs $value, one large key $key, both" \
  "removed $removed, filled anew $again"
((value * 10 > set * 14 && key * 10 > set * 23 && removed == key && again >= key)) ||
  { echo "not what was seen"; exit 1; }
