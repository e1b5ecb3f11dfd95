#!/bin/bash
# Records a program with threads and a child, and replays both processes.
set -euo pipefail
cd benchmarks/traces
export TRACES_BIN=$PWD
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "$*" >&2
  exit 1
}

./record.sh "$scratch/process-%p.trace" -- ./recorded_program >"$scratch/log"
cat "$scratch/log"
[[ $(ls "$scratch"/*.trace | wc -l) == 2 ]] || fail "there should be two processes"
# 20,000 steps, and most of what they put back.
grep -qE ': (3|4)[0-9]{4} events, 5 threads' "$scratch/log" || fail "the parent has four threads more"
grep -qE ': 1[0-9]{4} events, 1 threads' "$scratch/log" || fail "the child has one"
for trace in "$scratch"/*.trace; do
  ./replay "$trace" 3 >"$scratch/result"
  grep -qE '^result: \{"operations": [1-9][0-9]*, "seconds": [0-9.]+, .*"live_bytes": [1-9][0-9]*\}$' \
    "$scratch/result" || fail "no result line: $(cat "$scratch/result")"
done

MAX_EVENTS=1000 ./record.sh "$scratch/cut" -- ./recorded_program >"$scratch/log"
grep -q ': 1000 events' "$scratch/log" || fail "not cut to 1000 events"
./replay "$scratch/cut" >/dev/null

status=0
./record.sh "$scratch/one" -- bash -c 'exit 7' >/dev/null || status=$?
[[ $status == 7 ]] || fail "the program's exit status became $status"
status=0
./record.sh "$scratch/two" bash 2>"$scratch/log" || status=$?
[[ $status == 2 ]] && grep -q usage "$scratch/log" || fail "no usage"
status=0
head -c 1000 /dev/urandom >"$scratch/noise"
./convert "$scratch/noise" "$scratch/three" 2>"$scratch/log" || status=$?
[[ $status == 2 ]] && grep -q "not a recording" "$scratch/log" || fail "noise was converted"
