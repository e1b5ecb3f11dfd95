# title: PostgreSQL: initdb, pgbench, queries, pg_dump
# heavy: yes
# serves: initdb postgres.* pgbench psql pg_dump
# seconds: 400
# needs: setpriv
set -euo pipefail
if [[ $(id -u) == 0 ]]; then
  # The server refuses to run as root.
  exec setpriv --reuid=postgres --regid=postgres --init-groups bash "$0"
fi
bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -1)
PATH=$bin:$PATH
export PGHOST=$PWD PGPORT=5432 PGDATABASE=postgres PGDATA=$PWD/data PGUSER=tester
server=
stop() { [[ -z $server ]] || kill -INT "$server" 2>/dev/null || true; }
trap stop EXIT

initdb -U tester -A trust --no-sync --locale=C.UTF-8 >&2
# Cost-based choices stay the same from run to run without autovacuum.
postgres -k "$PWD" -h '' -c fsync=off -c autovacuum=off -c jit=off -c max_parallel_workers_per_gather=2 >&2 &
server=$!
until pg_isready -q; do kill -0 "$server"; done
pgbench -i -q -s 5 >&2
pgbench -c 6 -j 2 -t 400 -M prepared >&2
pgbench -c 4 -j 2 -t 400 -S >&2
query() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }
# Random amounts, but every transaction books the same one four times.
query -c 'SELECT (SELECT sum(abalance) FROM pgbench_accounts) = (SELECT sum(tbalance) FROM pgbench_tellers)
            AND (SELECT sum(bbalance) FROM pgbench_branches) = (SELECT sum(delta) FROM pgbench_history),
            (SELECT count(*) FROM pgbench_history)'
query -f "$PROGRAMS/work_postgres.sql"
pg_dump -t item -t owner | grep -vE '^(--|\\(un)?restrict)' | sha256sum
kill -INT "$server"
wait "$server"
server=
