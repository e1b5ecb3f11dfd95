#!/bin/bash
# Runs a program on hakmem and says what hakmem served, beside the same run on
# the system's malloc. Installs and builds what it needs.
#   tools/try.sh [--once] [--library PATH] [PROGRAM [ARGUMENT…]]
# The first run is the real one: it has the terminal, and its exit status is
# this command's. The others get the same standard input if that is a file,
# else none, and what they print is dropped. --once leaves them out, for
# programs that are interactive, take long or change what they work on.
# Without PROGRAM: a few real ones.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
}

library=
once=()
while (( $# )); do
  case $1 in
    --once) once=(--once) ;;
    --library)
      (( $# >= 2 )) || { echo "try: --library needs a path" >&2; exit 2; }
      library=$2
      shift ;;
    -h | --help) usage; exit 0 ;;
    --) shift; break ;;
    -*) echo "try: unknown option $1" >&2; usage >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
# Neither may take the program's input or add to its output.
"$root/tools/setup.sh" --try </dev/null >&2
only=()
[[ -z $library ]] || only=(--measure-only)
mapfile -t built < <("$root/tools/build_library.sh" "${only[@]}" </dev/null)
(( ${#built[@]} == 2 )) || exit 1
exec /usr/bin/python3 "$root/tools/try_report.py" \
  --library "${library:-${built[0]}}" --measure "${built[1]}" "${once[@]}" -- "$@"
