#!/bin/bash
# Records the calls of malloc of a program and of all it starts:
#   benchmarks/traces/record.sh OUT -- PROGRAM [ARGUMENT…]
# OUT gets the compact trace. With %p in it each process has a trace of its
# own, %p being its number; without, OUT is the process's with the most calls.
#   MAX_EVENTS   only so many, the first (default: all)
#   TRACES_BIN   where convert and librecorder.so are (default: bazel-bin)
# The exit status is the program's, or 2 if nothing was recorded.
set -euo pipefail

complain() {
  echo "record.sh: $*" >&2
  exit 2
}

[[ $# -ge 3 && $2 == -- ]] || complain "usage: record.sh OUT -- PROGRAM [ARGUMENT…]"
out=$1
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${TRACES_BIN:-$root/bazel-bin/benchmarks/traces}
for file in convert librecorder.so; do
  [[ -e $bin/$file ]] || complain "$bin/$file is not there; first: bazel build //benchmarks/traces"
done

recordings=$(mktemp -d)
trap 'rm -rf "$recordings"' EXIT
# For a server that changes its user.
chmod 1777 "$recordings"

status=0
env LD_PRELOAD="$bin/librecorder.so" HAKMEM_RECORD="$recordings/%p" "$@" || status=$?

most=0
largest=
for recording in "$recordings"/*; do
  [[ -e $recording ]] || complain "no process was recorded; is $1 linked statically?"
  trace=$recording.trace
  # A process that allocated nothing worth a trace is no reason to stop.
  "$bin/convert" "$recording" "$trace" ${MAX_EVENTS:-} >"$recording.log" || continue
  if [[ $out == *%p* ]]; then
    cp "$trace" "${out//%p/${recording##*/}}"
    sed "s|^[^:]*|${out//%p/${recording##*/}}|" "$recording.log"
  elif (( $(stat -c %s "$trace") > most )); then
    most=$(stat -c %s "$trace")
    largest=$trace
  fi
  rm "$recording"
done
if [[ $out != *%p* ]]; then
  [[ -n $largest ]] || complain "nothing was recorded"
  cp "$largest" "$out"
  sed "s|^[^:]*|$out|" "${largest%.trace}.log"
fi
exit "$status"
