#!/bin/bash
# PostgreSQL under pgbench: transactions on a few tables, then queries that
# sort, join and aggregate. The library is the server's alone; transactions
# per second count.
source "$(dirname "$0")/common.sh"

# The server refuses to run as root. Who it runs as instead may not even enter
# root's folders, where the library and this one may be, so it gets the right.
if [[ $(id -u) == 0 ]]; then
  chown postgres: .
  exec setpriv --reuid=postgres --regid=postgres --init-groups --inh-caps=+dac_override \
    --ambient-caps=+dac_override bash "$0" "$@"
fi
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
PATH=$bin:$PATH
export PGHOST=$PWD PGPORT=5432 PGDATABASE=postgres PGDATA=$PWD/data PGUSER=tester

inputs() {
  rm -rf "$PGDATA"
  initdb -U tester -A trust --no-sync --locale=C.UTF-8 >initdb.log
  start
  pgbench -i -q -s 2 >pgbench.log 2>&1
  psql -X -q -v ON_ERROR_STOP=1 -f "$programs/tables.sql"
  # INT: at once, but in order.
  stop_server INT
}

# Autovacuum would come at another time in each run.
start() {
  serve postgres -k "$PWD" -h '' -c fsync=off -c synchronous_commit=off -c autovacuum=off \
    -c jit=off -c max_parallel_workers_per_gather=0
  await pg_isready -q
  check_preload
}

work() {
  local transactions=1000 begin end
  [[ $1 == full ]] || transactions=200
  start
  begin=$EPOCHREALTIME
  pgbench -n -c 4 -j 1 -t "$transactions" -M prepared -b tpcb-like@3 -b select-only@7 >pgbench.log 2>&1
  pgbench -n -c 2 -j 1 -t $((transactions / 50)) -f "$programs/queries.sql" >>pgbench.log 2>&1
  end=$EPOCHREALTIME
  awk -v begin="$begin" -v end="$end" -v transactions=$((4 * transactions + 2 * (transactions / 50))) 'BEGIN {
    printf "result: {\"operations\": %d, \"seconds\": %.6f}\n", transactions, end - begin }' >&3
  # Random amounts, but every transaction books the same one four times.
  psql -X -q -A -t -v ON_ERROR_STOP=1 -c '
    SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(tbalance) FROM pgbench_tellers)
       AND (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history)'
  psql -X -q -A -t -v ON_ERROR_STOP=1 -f "$programs/queries.sql"
  psql -X -q -c 'TRUNCATE pgbench_history' -c 'UPDATE pgbench_accounts SET abalance = 0 WHERE abalance <> 0' \
    -c 'UPDATE pgbench_tellers SET tbalance = 0' -c 'UPDATE pgbench_branches SET bbalance = 0' -c 'VACUUM'
  stop_server INT
}

main "$@"
