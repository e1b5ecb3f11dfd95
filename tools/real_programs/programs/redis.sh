# title: redis-server under redis-benchmark; saving, loading, Lua, expiry
# serves: redis-server|redis-check-rdb redis-benchmark redis-cli
# seconds: 180
# needs: redis-server redis-benchmark redis-cli
set -euo pipefail
# Or valkey, which has the same commands.
name=${1:-redis}
socket=$PWD/redis.sock
server=
cli() { "$name-cli" -s "$socket" "$@"; }
stop() { [[ -z $server ]] || kill "$server" 2>/dev/null || true; }
trap stop EXIT
start() {
  "$name-server" --port 0 --unixsocket "$socket" --dir "$PWD" --save '' \
    --daemonize no --enable-debug-command yes --activedefrag no >&2 &
  server=$!
  until [[ $(cli ping 2>/dev/null) == PONG ]]; do kill -0 "$server"; done
}

start
"$name-benchmark" -s "$socket" -q -n 60000 -c 30 -P 8 -r 20000 -d 100 --threads 2 \
  -t set,get,incr,lpush,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset >&2
cli flushall async
# Data that follow from nothing but this text.
cli eval '
  math.randomseed(7)
  for i = 1, 60000 do
    redis.call("SET", "s" .. i, string.rep("v", i % 300))
    redis.call("HSET", "h" .. i % 500, "f" .. i, math.random(1000000))
    redis.call("ZADD", "z" .. i % 50, math.random(1000000), "m" .. i)
    redis.call("RPUSH", "l" .. i % 100, string.rep("e", math.random(200)))
    if i % 3 == 0 then redis.call("APPEND", "s" .. i - 1, string.rep("w", i % 1000)) end
    if i % 4 == 0 then redis.call("DEL", "s" .. i - 2) end
  end
  return redis.call("DBSIZE")' 0
cli debug digest
cli bgsave >&2
until [[ $(cli info persistence | tr -d '\r') == *rdb_bgsave_in_progress:0* ]]; do kill -0 "$server"; done
"$name-benchmark" -s "$socket" -q -n 30000 -c 20 -P 4 -t get,ping >&2
cli sort l7 alpha limit 0 2000 | sha256sum
cli debug reload
cli debug digest
cli memory purge
cli memory doctor >&2
cli memory stats >&2
cli memory usage s299 >&2
cli memory malloc-stats | grep -c . >&2
# Its allocator's figures are those of what it allocates from.
cli info memory | tr -d '\r' | awk -F: '{ of[$1] = $2 } END { print (of["allocator_allocated"] >= of["used_memory"]) }'
cli script flush async
cli eval 'return #redis.call("KEYS", "s*")' 0
cli shutdown save >&2 || true
wait "$server"
start
cli debug digest
cli dbsize
cli shutdown nosave >&2 || true
wait "$server"
server=
