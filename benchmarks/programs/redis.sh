#!/bin/bash
# redis-server under redis-benchmark. The
# library is the server's alone; requests per second count.
source "$(dirname "$0")/common.sh"

cli() { redis-cli -s redis.sock "$@"; }
answers() { [[ $(cli ping) == PONG ]]; }

# Data that follow from nothing but this text, and the digest of them all.
known_data() {
  cli flushall sync
  cli eval '
    math.randomseed(7)
    for i = 1, 20000 do
      redis.call("SET", "s" .. i, string.rep("v", i % 300))
      redis.call("HSET", "h" .. i % 500, "f" .. i, math.random(1000000))
      redis.call("RPUSH", "l" .. i % 100, string.rep("e", math.random(200)))
      if i % 4 == 0 then redis.call("DEL", "s" .. i - 2) end
    end
    return redis.call("DBSIZE")' 0
  cli debug digest
}

work() {
  local requests=900000 begin end
  [[ $1 == full ]] || requests=200000
  serve redis-server --port 0 --unixsocket "$PWD/redis.sock" --dir "$PWD" --save '' \
    --daemonize no --enable-debug-command yes --activedefrag no
  await answers
  check_preload
  # Values of all sizes, and enough keys that many are replaced.
  begin=$EPOCHREALTIME
  redis-benchmark -s redis.sock -q -n $((requests / 5)) -c 30 -P 16 -r 50000 -d 400 \
    -t set,get,lpush,rpop,hset >benchmark.log
  end=$EPOCHREALTIME
  awk -v begin="$begin" -v end="$end" -v requests="$requests" -v peak="$(peak_rss "$server")" 'BEGIN {
    printf "result: {\"operations\": %d, \"seconds\": %.6f, \"peak_rss_bytes\": %d}\n",
      requests, end - begin, peak }' >&3
  known_data
  stop_server
}

main "$@"
