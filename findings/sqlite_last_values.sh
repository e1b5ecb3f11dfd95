#!/bin/bash
# CPython 3.11 and its sqlite3 with SQLite 3.40.1: a connection keeps a copy of the last
# values of each statement that it has run, up to 128 of them.
#
# A good guess: the values of a query are needed while the query runs, and so are gone
# when its rows are fetched and the program has dropped its own. Seen: SQLite copies
# each bytes or str into the statement, and the module keeps statements for the next
# time without clearing them. Neither commit() nor the end of the cursor nor a
# collection takes the copies away. The same statement with other values does, and
# cached_statements=0 leaves none. A worker that stores files by many different
# statements keeps the last file of each.
#
# Seen: MiB of malloc after 50 different queries, each with 4 MiB of bytes: 200, after
# commit() and gc.collect() 200, after each was run with one byte 0; with
# cached_statements=0 0.
#
# Needs python3 (3.11) with sqlite3. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >values.py <<'PYTHON'
import ctypes
import gc
import sqlite3

FIELDS = ("arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks "
          "keepcost").split()


class Figures(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Figures


def used():
    figures = libc.mallinfo2()
    return figures.uordblks + figures.hblkhd


def ask(connection, size):
    for number in range(50):
        rows = connection.execute("select length(?), %d" % number, (bytes(size),))
        assert rows.fetchall() == [(size, number)]


connection = sqlite3.connect(":memory:")
without = sqlite3.connect(":memory:", cached_statements=0)
start = used()
ask(connection, 4 << 20)
print((used() - start) >> 20, end=" ")
connection.commit()
gc.collect()
print((used() - start) >> 20, end=" ")
ask(connection, 1)
print((used() - start) >> 20, end=" ")
ask(without, 4 << 20)
print((used() - start) >> 20, sqlite3.sqlite_version)
PYTHON
read -r asked committed again without version < <(env -u LD_PRELOAD python3 values.py)
echo "MiB of malloc with SQLite $version: asked $asked, committed $committed, asked" \
  "with one byte $again, without the cache $without"
((asked >= 200 && committed >= 200 && again < 5 && without < 5)) ||
  { echo "not what was seen"; exit 1; }
