# title: sqlite3: inserts, indices, joins, window functions, JSON, vacuum
# serves: sqlite3
# seconds: 180
# needs: sqlite3
set -euo pipefail
sqlite3 -bail work.db < "$PROGRAMS/work.sql"
sqlite3 -bail work.db .dump | sha256sum
# Everything in memory, restored from the dump.
sqlite3 -bail work.db .dump | sqlite3 -bail :memory: ".read /dev/stdin" \
  'SELECT count(*), sum(length(name)) FROM item;'
