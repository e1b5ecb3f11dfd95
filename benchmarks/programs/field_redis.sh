#!/bin/bash
# The redis of a checkout of mimalloc-bench, in FIELD_REDIS, with the requests
# that its bench.sh makes, but more of them. The library is the server's alone;
# requests per second count.
source "$(dirname "$0")/common.sh"

cli() { "$FIELD_REDIS/redis-cli" -s redis.sock "$@"; }
answers() { [[ $(cli ping) == PONG ]]; }

work() {
  local requests=600000 begin end
  [[ $1 == full ]] || requests=100000
  serve "$FIELD_REDIS/redis-server" --port 0 --unixsocket "$PWD/redis.sock" --dir "$PWD" --save '' --daemonize no
  await answers
  check_preload
  begin=$EPOCHREALTIME
  # All of it is one command: a list that is pushed nine elements.
  "$FIELD_REDIS/redis-benchmark" -s redis.sock -q -n $requests -r 1000000 -P 16 \
    lpush a 1 2 3 4 5 lrange a 1 5 >benchmark.log
  end=$EPOCHREALTIME
  awk -v begin="$begin" -v end="$end" -v requests="$requests" -v peak="$(peak_rss "$server")" 'BEGIN {
    printf "result: {\"operations\": %d, \"seconds\": %.6f, \"peak_rss_bytes\": %d}\n",
      requests, end - begin, peak }' >&3
  cli llen a
  cli lrange a 0 9
  stop_server
}

main "$@"
