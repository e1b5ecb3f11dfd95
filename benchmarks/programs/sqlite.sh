#!/bin/bash
# sqlite3: inserts, indices, joins, window functions, JSON, updates, vacuum.
source "$(dirname "$0")/common.sh"

inputs() {
  cp "$shared/work.sql" full.sql
  sed 's/\b200000\b/60000/g; s/\b50000\b/20000/g' full.sql >small.sql
}

work() {
  rm -f work.db*
  sqlite3 -init /dev/null -bail work.db <"$1.sql"
  sqlite3 -init /dev/null -bail work.db .dump | sha256sum
}

main "$@"
