#!/bin/bash
# Makes the traces of this folder again: record_all.sh [NAME…]
# from what the whole programs in benchmarks/programs do. HAKMEM_TOOL names
# another hakmem command than that of bazel-bin. The programs are Debian's;
# another version of one gives another trace, so figures before and after are
# not to be compared.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$here/../programs
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
events=400000
hakmem=${HAKMEM_TOOL:-$here/../../bazel-bin/tools/hakmem/hakmem}
[[ -x $hakmem ]] || {
  echo "record_all.sh: first: bazel build -c opt //tools/hakmem //allocator:preload_tracing" >&2
  exit 2
}
scratch=$(mktemp -d)
server=
finish() {
  [[ -z $server ]] || kill "$server" 2>/dev/null || true
  wait
  rm -rf "$scratch"
}
trap finish EXIT
cd "$scratch"

# record TRACE -- PROGRAM ARGUMENT…: of its processes, the one with the most calls.
record() {
  local calls trace=$1
  calls=$(mktemp -d)
  shift 2
  "$hakmem" run --variant=tracing --option "HAKMEM_TRACE=$calls/%p" -- "$@" >>log
  "$hakmem" trace --replay="$trace" --replay_events=$events "$(ls -S "$calls"/* | head -n 1)" >/dev/null 2>>log
}

clang() {
  record clang.trace -- clang++-19 -std=c++20 -O1 -c "$programs/small.cc" -o small.o
}

# All of its objects from malloc: without that, few calls are left.
cpython() {
  PYTHONMALLOC=malloc PYTHONHASHSEED=0 record cpython.trace -- python3 -s "$programs/data.py" 1
}

sqlite() {
  sed 's/\b200000\b/20000/g; s/\b50000\b/10000/g' "$here/../../tools/real_programs/work.sql" >work.sql
  record sqlite.trace -- sqlite3 -init /dev/null -bail work.db '.read work.sql'
}

# Threads for sockets and for large releases, as a server would have them.
redis() {
  record redis.trace -- redis-server --port 0 --unixsocket "$scratch/redis.sock" --save '' \
    --io-threads 3 --io-threads-do-reads yes --lazyfree-lazy-user-del yes --lazyfree-lazy-server-del yes &
  server=$!
  cli() { redis-cli -s redis.sock "$@"; }
  until [[ $(cli ping 2>/dev/null) == PONG ]]; do
    kill -0 "$server"
  done
  redis-benchmark -s redis.sock -q -n 6000 -c 40 -P 8 -r 3000 -d 300 -t set,get,lpush,rpop,sadd,hset,zadd >>log
  cli eval 'for i = 1, 3000 do redis.call("HSET", "big" .. i % 20, "field" .. i, string.rep("v", i % 500)) end' 0 >>log
  cli del $(printf 'big%d ' {0..19}) >>log
  redis-benchmark -s redis.sock -q -n 6000 -c 40 -P 8 -r 3000 -d 900 -t set,mset,lrange_100 >>log
  cli flushall async >>log
  cli shutdown nosave >>log 2>&1 || true
  wait "$server"
  server=
}

jq() {
  python3 -I - >items.json <<'END'
import json
print(json.dumps([{"id": i, "name": "name-%x" % (i * 48271 % 65537), "tags": ["t%d" % (i % k) for k in range(1, i % 6 + 1)],
                   "at": {"x": i / 7, "y": None, "z": "w" * (i % 60)}} for i in range(6000)]))
END
  record jq.trace -- jq '[.[] | select(.id % 3 != 0) | {key: .name, value: (.tags | join("-")), at: .at.x}]
    | group_by(.value) | map({tag: .[0].value, count: length, sum: (map(.at) | add)})' items.json
}

names=("$@")
[[ $# -gt 0 ]] || names=(clang cpython sqlite redis jq)
for name in "${names[@]}"; do
  case $name in
    clang | cpython | sqlite | redis | jq) ;;
    *)
      echo "record_all.sh: no such trace: $name" >&2
      exit 2
      ;;
  esac
  : >log
  "$name"
  grep ' calls; ' log
  xz -9e -c "$name.trace" >"$here/$name.trace.xz"
done
