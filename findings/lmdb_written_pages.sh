#!/bin/bash
# LMDB 0.9.24 (Debian liblmdb0 0.9.24-1, x86-64): an open database keeps as much of
# malloc's memory as its largest transaction has written.
#
# A good guess: LMDB maps the file and has no cache of its own, as its authors say, so
# a process with an open database has nearly nothing from malloc. Seen: a transaction
# writes its pages into blocks of malloc. The commit puts the blocks on a list of the
# environment for later transactions, up to 512 MiB, and only mdb_env_close frees them.
# A service that loads a database once and then reads it keeps the load in malloc's
# memory, beside the file's pages. With MDB_WRITEMAP the transaction writes into the
# mapping.
#
# Seen: a load of a million values of 100 bytes in one transaction: MiB of malloc beyond
# the opened database: before the commit 171, after it 171, after ten small transactions
# 171, after the close -3; with MDB_WRITEMAP 0 0 0 -3.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download liblmdb0=0.9.24-1 liblmdb-dev=0.9.24-1
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
cat >load.c <<'C'
#include <lmdb.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static MDB_env* environment;

static long opened = 0;

static long Used(void) {
  struct mallinfo2 info = mallinfo2();
  return (long)(info.uordblks + info.hblkhd) >> 20;
}

static void Show(void) { printf("%ld ", Used() - opened); }

static void Write(int count, int show) {
  static char bytes[100];
  MDB_txn* transaction;
  MDB_dbi table;
  if (mdb_txn_begin(environment, NULL, 0, &transaction) != 0) exit(1);
  if (mdb_dbi_open(transaction, NULL, 0, &table) != 0) exit(1);
  for (int i = 0; i < count; ++i) {
    MDB_val key = {sizeof(i), &i}, value = {sizeof(bytes), bytes};
    if (mdb_put(transaction, table, &key, &value, 0) != 0) exit(1);
  }
  if (show) Show();
  if (mdb_txn_commit(transaction) != 0) exit(1);
}

int main(int arguments, char** argument) {
  (void)argument;
  mdb_env_create(&environment);
  mdb_env_set_mapsize(environment, 1 << 30);
  unsigned flags = MDB_NOSYNC | (arguments > 1 ? MDB_WRITEMAP : 0);
  if (mdb_env_open(environment, ".", flags, 0600) != 0) return 1;
  opened = Used();
  Write(1000000, 1);
  Show();
  for (int i = 0; i < 10; ++i) Write(10, 0);
  Show();
  mdb_env_close(environment);
  Show();
  return 0;
}
C
gcc -O1 -o load load.c -Ipackage/usr/include "$libraries/liblmdb.so.0" \
  -Wl,-rpath,"$libraries"
plain=$(env -u LD_PRELOAD ./load)
rm data.mdb lock.mdb
mapped=$(env -u LD_PRELOAD ./load mapped)
echo "MiB of malloc before the commit, after it, after ten more, after the close:" \
  "$plain; with MDB_WRITEMAP $mapped"
read -r before after later closed <<<"$plain"
((before > 150 && after == before && later == before && closed <= 0)) &&
  [[ $mapped == "0 0 0 "* ]] || { echo "not what was seen"; exit 1; }
