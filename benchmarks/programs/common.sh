# What the scripts of this folder share; each sources it and then says
#   main "$@"
# having defined
#   inputs      optional: makes the files that it works on, from nothing
#   work SIZE   does the work and prints what has to come out of it, whatever
#               the allocator is; SIZE is full or small. The line of results
#               goes to descriptor 3, which `prepare` drops.
# Usage of each: NAME.sh prepare | NAME.sh run [small], in the same directory.
# `prepare` works once without a preloaded library and keeps the output, with
# which `run` compares its own.
set -euo pipefail

programs=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Inputs that the tests with real programs have as well.
shared=$programs/../../tools/real_programs
# Debian's own programs, in an environment that is the same everywhere.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 TZ=UTC HOME=$PWD
unset CDPATH

complain() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

inputs() { :; }

main() {
  local size
  case "${1:-} ${2:-full}" in
    "prepare full")
      unset LD_PRELOAD BENCH_PRELOAD
      exec 3>/dev/null
      inputs
      for size in full small; do
        work $size >expected.$size
      done
      ;;
    "run full" | "run small")
      size=${2:-full}
      exec 3>&1
      [[ -e expected.$size ]] || complain "first: $(basename "$0") prepare"
      work "$size" >output.$size
      cmp expected.$size output.$size >&2 || complain "the output is not what it is without a preloaded library"
      ;;
    *)
      echo "usage: $(basename "$0") prepare | run [small]" >&2
      exit 2
      ;;
  esac
}

# --- Servers: the library is for them, not for what drives them ----------

# serve COMMAND…: starts it with BENCH_PRELOAD; `server` is its number. It is
# stopped when the script ends, however that comes.
server=
serve() {
  env ${BENCH_PRELOAD:+LD_PRELOAD="$BENCH_PRELOAD"} "$@" >server.log 2>&1 &
  server=$!
  trap 'stop_server || true' EXIT
  trap 'exit 143' TERM
  trap 'exit 130' INT
}

# await COMMAND…: until it succeeds, as long as the server lives.
await() {
  until "$@" >/dev/null 2>&1; do
    kill -0 "$server" 2>/dev/null || break
  done
  kill -0 "$server" 2>/dev/null && return
  tail -n 5 server.log >&2
  complain "the server does not answer"
}

# Whether the server runs on the library it should.
check_preload() {
  # The first of the list is the allocator.
  local library=${BENCH_PRELOAD:-}
  library=${library%%:*}
  [[ -z $library ]] || grep -qF "$(readlink -f "$library")" "/proc/$server/maps" ||
    complain "$library is not in the server"
}

# stop_server [SIGNAL]: and waits, so that nothing outlives the script. A server that is
# asked to end does so with 0; else its status is this one's, and so the script's.
stop_server() {
  local status=0
  [[ -n $server ]] || return 0
  kill "-${1:-TERM}" "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || status=$?
  server=
  (( status == 0 )) || echo "$(basename "$0"): the server ended with status $status; it said: $(tail -n 1 server.log)" >&2
  return "$status"
}

# peak_rss PROCESS: in bytes.
peak_rss() {
  awk '/^VmHWM:/ { print 1024 * $2 }' "/proc/$1/status"
}
