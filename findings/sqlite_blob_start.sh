#!/bin/bash
# SQLite 3.40.1 (Debian libsqlite3-0): to read the first four bytes of a blob of 64 MiB
# takes 64 MiB, and to ask whether it is null too.
#
# A good guess: a large blob lies in a chain of pages, so substr(data, 1, 4), made to
# tell files by their first bytes, reads the first page, as length(data) reads none.
# Seen: length and typeof look at the row's head alone. Any other use of the column
# makes the whole value in one block first: substr, a comparison, and "data IS NULL",
# whose answer is in the head. A column behind the blob walks the chain, with some pages
# in memory. sqlite3_blob_open reads the four bytes and no more.
#
# Seen: MiB of sqlite3_memory_highwater for length(data) 0, typeof(data) 0,
# substr(data, 1, 4) 66, data IS NULL 66, typeof(data) = 'null' 0, a column behind 2,
# four bytes by sqlite3_blob_open 0.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libsqlite3-0=3.40.1-2*' \
  'libsqlite3-dev=3.40.1-2*'
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libsqlite3.so.0)
cat >blob.c <<'C'
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static sqlite3* Open(void) {
  sqlite3* database;
  if (sqlite3_open("file", &database) != SQLITE_OK) exit(1);
  sqlite3_exec(database, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
  sqlite3_memory_highwater(1);
  return database;
}

static void Run(sqlite3* database, const char* statement) {
  if (sqlite3_exec(database, statement, NULL, NULL, NULL) != SQLITE_OK) exit(1);
}

static void Show(sqlite3* database) {
  printf("%lld ", sqlite3_memory_highwater(0) >> 20);
  sqlite3_close(database);
}

static void Select(const char* column) {
  sqlite3* database = Open();
  char* statement = sqlite3_mprintf("SELECT %s FROM files", column);
  Run(database, statement);
  sqlite3_free(statement);
  Show(database);
}

int main(void) {
  sqlite3* database = Open();
  Run(database, "CREATE TABLE files (id INTEGER PRIMARY KEY, data BLOB, name TEXT)");
  Run(database, "INSERT INTO files VALUES (1, zeroblob(67108864), 'a')");
  sqlite3_close(database);
  Select("length(data)");
  Select("typeof(data)");
  Select("substr(data, 1, 4)");
  Select("data IS NULL");
  Select("typeof(data) = 'null'");
  Select("name");
  database = Open();
  sqlite3_blob* blob;
  char bytes[4];
  if (sqlite3_blob_open(database, "main", "files", "data", 1, 0, &blob)) return 1;
  if (sqlite3_blob_read(blob, bytes, 4, 0) != SQLITE_OK) return 1;
  sqlite3_blob_close(blob);
  Show(database);
  puts("");
  return 0;
}
C
gcc -O1 -o blob blob.c -Ipackage/usr/include "$library" -lm \
  -Wl,-rpath,"$(dirname "$library")"
seen=$(./blob)
echo "MiB for length, typeof, substr, IS NULL, typeof = 'null', a column behind," \
  "sqlite3_blob_open: $seen"
[[ $seen == "0 0 66 66 0 2 0 " ]] || { echo "not what was seen"; exit 1; }
