#!/bin/bash
# LevelDB 1.23 (Debian libleveldb1d 1.23-4, x86-64): a block cache of 256 MiB stays
# empty if the data are not compressed, or do not compress well.
#
# A good guess: options.block_cache keeps the blocks that were read, whatever they hold,
# and its size is the memory that a busy database takes for them. Seen: up to 1,000
# files are mapped, and a block that lies in the file as it is used is not put into the
# cache. A block is stored compressed if that saves an eighth. So a database with
# kNoCompression, or of pictures and encrypted values, has nothing in its cache after
# each value was read, and keeps whole files mapped instead. With text the same cache
# fills.
#
# Seen: 50,000 values of 1,000 bytes, each read once: bytes by
# leveldb.approximate-memory-usage, which has the cache: random values 4104, half random
# and half zeros 50808444, the latter without compression 4104.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libleveldb1d=1.23-4 \
  libleveldb-dev=1.23-4 libsnappy1v5=1.1.9-3
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >cache.c <<'C'
#include <leveldb/c.h>
#include <stdio.h>
#include <stdlib.h>

static char* failure;

static void Check(void) {
  if (failure != NULL) exit(1);
}

int main(int arguments, char** argument) {
  char key[16], value[1000] = {0};
  unsigned random = 1;
  if (arguments < 3) return 1;
  size_t letters = strtoul(argument[1], NULL, 10), length;
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_compression(options, atoi(argument[2]));
  leveldb_options_set_cache(options, leveldb_cache_create_lru(256 << 20));
  leveldb_t* database = leveldb_open(options, "database", &failure);
  Check();
  leveldb_writeoptions_t* write = leveldb_writeoptions_create();
  for (int i = 0; i < 50000; ++i) {
    for (size_t j = 0; j < letters; ++j) {
      random = random * 1103515245 + 12345;
      value[j] = (char)(random >> 16);
    }
    int written = snprintf(key, sizeof(key), "%08d", i);
    leveldb_put(database, write, key, (size_t)written, value, sizeof(value), &failure);
    Check();
  }
  leveldb_compact_range(database, NULL, 0, NULL, 0);
  leveldb_readoptions_t* read = leveldb_readoptions_create();
  for (int i = 0; i < 50000; ++i) {
    int written = snprintf(key, sizeof(key), "%08d", i);
    char* got = leveldb_get(database, read, key, (size_t)written, &length, &failure);
    Check();
    if (got == NULL || length != sizeof(value)) return 1;
    leveldb_free(got);
  }
  puts(leveldb_property_value(database, "leveldb.approximate-memory-usage"));
  leveldb_close(database);
  return 0;
}
C
gcc -O1 -o cache cache.c -Ipackage/usr/include "$libraries/libleveldb.so.1d" \
  -Wl,-rpath,"$libraries" -Wl,-rpath-link,"$libraries"
Usage() {  # $1: random bytes of each value. $2: 1 with compression
  rm -rf database
  env -u LD_PRELOAD LD_LIBRARY_PATH="$libraries" ./cache "$1" "$2"
}
random=$(Usage 1000 1) half=$(Usage 500 1) plain=$(Usage 500 0)
echo "bytes in memory after 50 MB were read: random values $random, half zeros $half," \
  "half zeros without compression $plain"
((random < 100000 && half > 40000000 && plain < 100000)) ||
  { echo "not what was seen"; exit 1; }
