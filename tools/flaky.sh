#!/bin/bash
# Runs tests N times in ways in which a test that depends on time, load, order or
# luck differs, and lists those that do.
#   tools/flaky.sh [N] [TARGET…]    20 times, all tests of CI, with the scripts'
# Eight processes that never rest run beside all runs. Every second run is in
# shuffled order, every second pair of runs on one processor. An argument that
# begins with -- goes to Bazel: --config=tsan. HAK_CACHE and HAK_BAZEL: see
# tools/test.sh. Exit status 1: some test did not pass each time.
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
cache=${HAK_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/hakmem}
read -ra bazel <<<"${HAK_BAZEL:-bazel}"
mkdir -p "$cache/bazel"
scratch=$(mktemp -d)
busy=()
finish() {
  (( ${#busy[@]} == 0 )) || kill "${busy[@]}" 2>/dev/null || true
  rm -rf "$scratch"
}
trap finish EXIT

common=(--noshow_progress --show_result=0 "--disk_cache=$cache/bazel" --build_tests_only --keep_going
  "--build_tag_filters=-nightly" "${options[@]}")
filters=-nightly
[[ " ${options[*]} " != *" --config="*@(san|tsan)* ]] || filters=-nightly,-nosan
common+=("--test_tag_filters=$filters")
# What is compiled is compiled before the load begins.
"${bazel[@]}" build "${common[@]}" -- "${targets[@]}"
for ((i = 0; i < 8; ++i)); do
  bash -c 'while :; do :; done' &
  busy+=($!)
done

processor=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
for ((run = 1; run <= runs; ++run)); do
  way=()
  under=()
  (( run % 2 )) || way+=(--test_env=GTEST_SHUFFLE=1 "--test_env=GTEST_RANDOM_SEED=$run")
  (( run % 4 < 2 )) || under=(taskset -c "$processor")
  (( ${#under[@]} == 0 )) || way+=("--run_under=${under[*]}")
  code=0
  "${bazel[@]}" test "${common[@]}" "${way[@]}" --nocache_test_results --test_summary=none \
    "--build_event_json_file=$scratch/events" -- "${targets[@]}" >"$scratch/log" 2>&1 || code=$?
  read -r good bad < <(tools/bazel_results.py "$scratch/events" "$code" 2>"$scratch/failed")
  if [[ $scripts == yes ]]; then
    "${under[@]}" tools/test.sh --only=scripts >"$scratch/scripts" 2>&1 || true
    cat "$scratch/scripts" >>"$scratch/log"
    sed -n 's/^\([^ ]*\) *FAILED .*/  FAILED: \1/p' "$scratch/scripts" >>"$scratch/failed"
    if [[ $(tail -n 1 "$scratch/scripts") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
      good=$((good + BASH_REMATCH[1])) bad=$((bad + BASH_REMATCH[2]))
    else
      bad=$((bad + 1))
      echo "  NOT RUN: tools/test.sh --only=scripts" >>"$scratch/failed"
    fi
  fi
  printf 'run %d of %d %-58s %4d passed %4d failed\n' "$run" "$runs" "(${way[*]:-as always})" "$good" "$bad"
  (( bad == 0 )) || cp "$scratch/log" "${TMPDIR:-/tmp}/hakmem-flaky-$run.log"
  sed -n 's/^  [A-Z_ ]*: //p' "$scratch/failed" >>"$scratch/differ"
done
if [[ -s $scratch/differ ]]; then
  echo "did not pass each time (of $runs runs; their output is in ${TMPDIR:-/tmp}/hakmem-flaky-*.log):"
  sort "$scratch/differ" | uniq -c | sort -rn
  exit 1
fi
echo "all passed each time"
