# title: MariaDB: a new data folder, inserts, joins, a dump
# serves: mariadbd mariadb mariadb-dump
# seconds: 300
# needs: mariadbd mariadb-install-db mariadb mariadb-dump setpriv
set -euo pipefail
if [[ $(id -u) == 0 ]]; then
  # The server refuses to run as root.
  exec setpriv --reuid=mysql --regid=mysql --init-groups bash "$0"
fi
server=
stop() { [[ -z $server ]] || kill "$server" 2>/dev/null || true; }
trap stop EXIT
mariadb-install-db --no-defaults --datadir="$PWD/data" --auth-root-authentication-method=normal --skip-test-db >&2
mariadbd --no-defaults --datadir="$PWD/data" --socket="$PWD/socket" --skip-networking --pid-file="$PWD/pid" >&2 &
server=$!
sql() { mariadb --no-defaults --user=root --socket="$PWD/socket" --batch --skip-column-names "$@"; }
until sql --execute='SELECT 1' >&2 2>/dev/null; do kill -0 "$server"; done
sql <<'END'
CREATE DATABASE work;
USE work;
CREATE TABLE item (id INT PRIMARY KEY, owner INT, name VARCHAR(200), body TEXT, KEY (owner)) ENGINE=InnoDB;
INSERT INTO item SELECT seq, seq % 97, CONCAT('name ', seq * 7919 % 10007), REPEAT(CHAR(97 + seq % 26), seq % 500) FROM seq_1_to_10000;
CREATE TABLE named (id INT PRIMARY KEY, name VARCHAR(200), KEY (name)) ENGINE=Aria SELECT id, name FROM item;
SELECT owner, COUNT(*), SUM(LENGTH(body)), MIN(name) FROM item GROUP BY owner ORDER BY owner;
SELECT COUNT(*) FROM item a JOIN named b ON a.name = b.name;
UPDATE item SET body = CONCAT(body, body) WHERE id % 3 = 0;
DELETE FROM item WHERE id % 5 = 0;
SELECT name, ROW_NUMBER() OVER (PARTITION BY owner ORDER BY name, id) FROM item WHERE owner < 3 ORDER BY owner, name, id LIMIT 200;
SELECT JSON_ARRAYAGG(name ORDER BY id) FROM item WHERE owner = 5;
END
sql --execute="SHOW VARIABLES LIKE 'version_malloc_library'" >&2
mariadb-dump --no-defaults --user=root --socket="$PWD/socket" --skip-comments --skip-dump-date work | sha256sum
kill "$server"
wait "$server"
server=
