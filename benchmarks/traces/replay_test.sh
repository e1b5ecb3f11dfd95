#!/bin/bash
# Replays each trace that is kept here, and refuses damaged ones.
set -euo pipefail
cd benchmarks/traces
replay=$PWD/replay
unpack=$PWD/unpack.sh
names=(*.trace.xz)
cd "$TEST_TMPDIR"

fail() {
  echo "$*" >&2
  exit 1
}

# refused WORDS FILE [REPEATS]
refused() {
  local words=$1 status=0
  shift
  "$replay" "$@" >out 2>err || status=$?
  [[ $status == 2 && ! -s out ]] || fail "exit status $status for: $*"
  grep -qF "$words" err || fail "not '$words' but '$(cat err)' for: $*"
}

for name in "${names[@]}"; do
  "$unpack" "${name%.trace.xz}"
  "$replay" "${name%.xz}" >out
  grep -qE '^result: \{"operations": [1-9][0-9]{5,}, ' out || fail "$name: $(cat out)"
done

trace=${names[0]%.xz}
refused "No such file" missing
refused "not a file" .
refused "usage" "$trace" 0
refused "usage" "$trace" ten
refused "not an allocation trace" "$replay"
: >empty
refused "not an allocation trace" empty
head -c 5000 "$trace" >short
refused "cut short" short
{ cat "$trace"; echo more; } >long
refused "damaged" long
