#!/bin/bash
# Runs tests N times in ways in which a test that depends on time, load, order or
# luck differs, and lists those that do.
#   tools/flaky.sh [N] [TARGET…]    20 times, all tests of CI, with the scripts'
# Ten tests run at once, also of the same target: they are each other's load. Half
# of the runs are in shuffled order, half on one processor. An argument that begins
# with -- goes to Bazel: --config=tsan. HAK_CACHE and HAK_BAZEL: see tools/test.sh.
# Exit status 1: some test did not pass each time.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=20
if [[ ${1:-} =~ ^[0-9]+$ ]]; then
  runs=$1
  shift
fi
options=()
targets=()
for argument in "$@"; do
  case $argument in
    --help | -h) sed -n '2,/^set /{/^set /d; s/^# \{0,1\}//; p}' "$0"; exit ;;
    --*) options+=("$argument") ;;
    *) targets+=("$argument") ;;
  esac
done
scripts=no
(( ${#targets[@]} + ${#options[@]} )) || scripts=yes
(( ${#targets[@]} )) || targets=(//...)
at_once=10
cache=${HAK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hakmem}
read -ra bazel <<<"${HAK_BAZEL:-bazel}"
mkdir -p "$cache/bazel"
logs=$(mktemp -d "${TMPDIR:-/tmp}/hakmem-flaky-XXXXXX")

common=(--noshow_progress --show_result=0 "--disk_cache=$cache/bazel" --build_tests_only --keep_going
  "--jobs=$at_once" "--build_tag_filters=-nightly" "${options[@]}")
filters=-nightly
[[ " ${options[*]} " != *" --config="*@(san|tsan)* ]] || filters=-nightly,-nosan
common+=("--test_tag_filters=$filters")
# What is compiled is compiled before the load begins.
"${bazel[@]}" build "${common[@]}" -- "${targets[@]}"

differ=no
# told WAY RUNS PASSED FAILED
told() {
  printf '%-34s %3d runs of %4d, did not pass each time: %d\n' "$1" "$2" $(($3 + $4)) "$4"
  (( $4 == 0 )) || differ=yes
}

# run_targets WAY RUNS OPTION…
run_targets() {
  local way=$1 times=$2 code=0 good bad
  shift 2
  "${bazel[@]}" test "${common[@]}" "$@" "--runs_per_test=$times" "--local_test_jobs=$at_once" --nocache_test_results \
    --test_summary=none "--build_event_json_file=$logs/events" -- "${targets[@]}" >"$logs/$way.log" 2>&1 || code=$?
  read -r good bad < <(tools/bazel_results.py "$logs/events" "$code" "${options[@]}")
  rm -f "$logs/events"
  told "tests, $way" "$times" "$good" "$bad"
}

# run_scripts WAY RUNS COMMAND…: the tests that are not Bazel's; COMMAND runs each.
run_scripts() {
  local way=$1 times=$2 found failed run
  shift 2
  mapfile -t found < <(git ls-files 'tools/*_test.py' |
    while read -r test; do [[ -e $(dirname "$test")/BUILD ]] || echo "$test"; done)
  for ((run = 1; run <= times; ++run)); do
    printf '%s\n' "${found[@]/%/ $run}"
  done | shuf | under=$* xargs -P"$at_once" -L1 bash -c '
    log=$0/${1//\//_}-$2.log
    if $under "$1" >"$log" 2>&1; then rm "$log"; else echo "  FAILED: $1"; fi' "$logs" >"$logs/scripts"
  sort "$logs/scripts" | uniq -c
  failed=$(sort -u "$logs/scripts" | wc -l)
  told "scripts, $way" "$times" $((${#found[@]} - failed)) "$failed"
}

# way NAME RUNS COMMAND…: COMMAND comes before each test.
way() {
  local name=$1 times=$2 how=()
  shift 2
  (( times )) || return 0
  [[ $name != *shuffled* ]] || how+=(--test_env=GTEST_SHUFFLE=1)
  (( $# == 0 )) || how+=("--run_under=$*")
  run_targets "$name" "$times" "${how[@]}"
  [[ $scripts == no ]] || run_scripts "$name" "$times" "$@"
}

processor=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
one=(taskset -c "$processor")
way "as always" $(((runs + 3) / 4))
way "shuffled" $(((runs + 2) / 4))
way "one processor" $(((runs + 1) / 4)) "${one[@]}"
way "shuffled, one processor" $((runs / 4)) "${one[@]}"
if [[ $differ == yes ]]; then
  echo "output of those that did not pass each time: $logs"
  exit 1
fi
rm -rf "$logs"
echo "all passed each time"
