#!/bin/bash
# APR 1.7.2 (Debian libapr1 1.7.2-3+deb12u*, x86-64): the pools of Apache and
# Subversion are no memory of malloc's.
#
# A good guess: APR's pools take blocks from malloc, which is what its allocator
# does unless it is built otherwise, so another malloc by LD_PRELOAD serves them, a
# heap profiler sees them, and malloc_trim gives back what a destroyed pool leaves.
# Seen: Debian builds APR with the other way, which maps each block by a call of its
# own, and nothing of the interface tells which it is. malloc's figures stay at 0. A
# pool that is destroyed gives nothing back, as the root's allocator keeps it
# without a bound.
#
# Seen: of 62 MiB in a pool, MiB that malloc counts 0, in memory 62, in memory after
# apr_pool_destroy and malloc_trim 62.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libapr1=1.7.2-3+deb12u*' libuuid1
for file in *.deb; do dpkg-deb -x "$file" package; done
apr=$(find "$PWD/package" -name libapr-1.so.0)
export LD_LIBRARY_PATH=$(dirname "$apr"):$PWD/package/lib/x86_64-linux-gnu
cat >pool.c <<'C'
#include <malloc.h>
#include <stdio.h>
#include <string.h>

struct apr_pool_t;
int apr_initialize(void);
int apr_pool_create_ex(struct apr_pool_t** pool, struct apr_pool_t* parent,
                       void* abort, void* allocator);
void* apr_palloc(struct apr_pool_t* pool, size_t size);
void apr_pool_destroy(struct apr_pool_t* pool);

static long InMemory(void) {
  char line[256];
  long kib = 0;
  FILE* status = fopen("/proc/self/status", "r");
  if (status == NULL) return -1;
  while (fgets(line, sizeof(line), status) != NULL) {
    sscanf(line, "RssAnon: %ld", &kib);
  }
  fclose(status);
  return kib;
}

int main(void) {
  struct apr_pool_t* pool;
  if (apr_initialize() != 0) return 1;
  if (apr_pool_create_ex(&pool, NULL, NULL, NULL) != 0) return 1;
  long before = InMemory();
  size_t counted = mallinfo2().uordblks + mallinfo2().hblkhd;
  for (int i = 0; i < 1000; ++i) memset(apr_palloc(pool, 65000), 1, 65000);
  counted = mallinfo2().uordblks + mallinfo2().hblkhd - counted;
  long filled = InMemory();
  apr_pool_destroy(pool);
  malloc_trim(0);
  printf("%zu %ld %ld\n", counted >> 20, (filled - before) >> 10,
         (InMemory() - before) >> 10);
  return 0;
}
C
gcc -O1 -o pool pool.c "$apr"
read -r counted filled destroyed < <(./pool)
echo "MiB of 62: by malloc's count $counted, in memory $filled, after the pool's end" \
  "$destroyed"
((counted == 0 && filled > 55 && destroyed > 55)) ||
  { echo "not what was seen"; exit 1; }
