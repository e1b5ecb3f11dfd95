# The legs of tools/test.sh, which reads this file; each leg is a function leg_NAME.
# They use its variables: all, base, cache, scratch.

passed=0
failed=0
read -ra bazel <<<"$HAK_BAZEL"
# Some tests wait for others; what compiles meanwhile has a processor to itself.
jobs=$((2 * $(nproc)))
quiet=(--noshow_progress --show_result=0 "--disk_cache=$cache/bazel"
  "--jobs=$jobs" "--local_cpu_resources=$jobs"
  # So that a commit leaves results of tests in the cache as they are.
  "--workspace_status_command=echo BUILD_SCM_REVISION unknown")

# count NAME PASSED FAILED SINCE
count() {
  passed=$((passed + $2))
  failed=$((failed + $3))
  local word=ok
  (( $3 == 0 )) || word=FAILED
  printf '%-44s %-6s %4d passed %4d failed %5d s\n' "$1" "$word" "$2" "$3" $((SECONDS - $4))
}

# check NAME COMMAND…: one check; its output is shown when it fails.
check() {
  local name=$1 since=$SECONDS
  shift
  if "$@" >"$scratch/log" 2>&1; then
    count "$name" 1 0 "$since"
  else
    cat "$scratch/log"
    count "$name" 0 1 "$since"
  fi
}

# tests NAME ARGUMENTS…: `bazel test`; each test counts.
tests() {
  local name=$1 since=$SECONDS code=0 good bad
  shift
  # The output of failed tests comes between lines that say INFO.
  "${bazel[@]}" test "${quiet[@]}" --keep_going --test_summary=none \
    --build_event_json_file="$scratch/events" "$@" >"$scratch/log" 2>&1 || code=$?
  sed '/^INFO: /d; /^Use --sandbox_debug/d; /^Executed /d; /^There were tests whose/d; /^$/d' "$scratch/log"
  read -r good bad < <(tools/bazel_results.py "$scratch/events" "$code" "$@")
  rm -f "$scratch/events"
  count "$name" "$good" "$bad" "$since"
}

# counted NAME COMMAND…: a script that ends with its own N passed, N failed.
counted() {
  local name=$1 since=$SECONDS code=0 good=0 bad=0
  shift
  "$@" >"$scratch/log" 2>&1 || code=$?
  if [[ $(tail -n 1 "$scratch/log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    good=${BASH_REMATCH[1]} bad=${BASH_REMATCH[2]}
  fi
  # It must say something, and its exit status must agree.
  (( good + bad > 0 && (code == 0) == (bad == 0) )) || bad=$((bad + 1))
  (( bad == 0 )) || cat "$scratch/log"
  count "$name" "$good" "$bad" "$since"
}

# --- What a run says and keeps -------------------------------------------------

# The whole tree and the installed packages, as a hash: what a leg that passed depends on.
state_of_everything() {
  {
    git ls-files -s
    git diff HEAD
    git ls-files -z --others --exclude-standard | xargs -0r sha256sum
    dpkg-query -W -f '${Package} ${Version} ${db:Status-Abbrev}\n' 2>/dev/null
    nproc
    uname -r
    id -u
    echo "$HAK_BAZEL"
  } | sha256sum | cut -c 1-40
}

# run_leg NAME: what has passed on the same tree and packages is not run again, but at night. Bazel's own legs know better
# what depends on what, so they are always asked.
run_leg() {
  local leg=$1 since=$SECONDS failed_before=$failed passed_before=$passed stamp=
  if [[ $all == no && -z $only && $leg == @(scripts|layering|gcc|programs) ]]; then
    stamp=$cache/passed/$leg-$(state_of_everything)
    if [[ -s $stamp ]]; then
      touch "$stamp"
      count "$leg, as before" "$(<"$stamp")" 0 "$since"
      return
    fi
  fi
  "leg_$leg"
  if (( failed > failed_before )); then
    echo "  this leg alone: tools/test.sh$([[ $all == no ]] || echo " --all") --only=$leg"
  elif [[ -n $stamp ]]; then
    echo $((passed - passed_before)) >"$stamp"
  fi
  mkdir -p "$cache/seconds"
  # Of the longest run here: what a run from nothing takes.
  local file=$cache/seconds/$leg-$all seconds=$((SECONDS - since)) longest=0
  [[ ! -s $file ]] || longest=$(<"$file")
  (( seconds <= longest )) || echo "$seconds" >"$file"
}

# What a run is about to do, and about how long that takes.
tell_plan() {
  local leg seconds=0 here="from nothing, on two processors" file
  for leg in "${legs[@]}"; do
    file=$cache/seconds/$leg-$all
    if [[ -s $file ]]; then
      seconds=$((seconds + $(<"$file"))) here="at most so far, here"
    else
      seconds=$((seconds + $(usual_seconds "$leg")))
    fi
  done
  echo "hakmem: ${legs[*]}: about $(((seconds + 59) / 60)) minutes ($here); less where little changed"
  if [[ -s $cache/last_whole_run ]]; then
    local day commit result
    read -r day commit result <"$cache/last_whole_run"
    echo "hakmem: tools/test.sh --all last ran whole on $day, at $commit: $result"
  else
    echo "hakmem: tools/test.sh --all has not run whole here"
  fi
}

# docs/testing.md, The legs.
usual_seconds() {
  local -A ci=([style]=3 [scripts]=22 [tests]=572 [tidy]=77 [layering]=7 [asan]=187 [tsan]=251 [gcc]=41 [programs]=168)
  local -A nightly=([scripts]=180 [tests]=1800 [tidy]=430 [asan]=900 [tsan]=900 [gcc]=600 [programs]=900 [stress]=140
    [loaded]=1200 [pgo]=120 [installations]=3600 [newest]=1800)
  [[ $all == yes && -n ${nightly[$1]:-} ]] && echo "${nightly[$1]}" || echo "${ci[$1]}"
}

# --- Text and scripts ----------------------------------------------------------

# `set -e` is off in what check and counted call; so each step is tied to the next.
# check_format FILE…
check_format() {
  local files=() file output wrong
  for file in "$@"; do
    [[ $file != *.@(cc|h|inc) || ! -e $file ]] || files+=("$file")
  done
  (( ${#files[@]} )) || return 0
  output=$(clang-format-19 --dry-run "${files[@]}" 2>&1) || { echo "$output"; return 1; }
  wrong=$(sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: warning: .*/\1/p' <<<"$output" | sort -u)
  [[ -z $wrong ]] || { printf 'to do: clang-format-19 -i \\\n%s\n' "$wrong"; return 1; }
}

leg_style() {
  local files
  if [[ -n $base ]]; then
    tools/changed.py files "$base" >"$scratch/files"
    mapfile -t files <"$scratch/files"
  else
    mapfile -t files < <(git ls-files --cached --others --exclude-standard)
  fi
  check "format" check_format "${files[@]}"
  check "lint" tools/lint.py "${files[@]}"
  check "budgets" tools/budgets.py
  check "prose" tools/prose.py
}

# scripts TEST…: the tests that are not Bazel's, several at once.
scripts() {
  local test code seconds
  printf '%s\n' "$@" | xargs -r "-P$jobs" -I{} bash -c '
    mkdir -p "$2/$(dirname "$1")" && code=0 && SECONDS=0
    "$1" >"$2/$1.log" 2>&1 || code=$?
    echo "$code $SECONDS" >"$2/$1.code"' scripts {} "$scratch"
  for test in "$@"; do
    read -r code seconds <"$scratch/$test.code"
    if (( code == 0 )); then
      count "$test" 1 0 $((SECONDS - seconds))
    else
      cat "$scratch/$test.log"
      echo "  alone: $test"
      count "$test" 0 1 $((SECONDS - seconds))
    fi
  done
}

leg_scripts() {
  local found
  mapfile -t found < <(git ls-files 'tools/*_test.py' |
    while read -r test; do [[ -e $(dirname "$test")/BUILD ]] || echo "$test"; done)
  (( ${#found[@]} )) || count "scripts: there are none" 0 1 "$SECONDS"
  [[ $all == no ]] || export HAK_NIGHTLY=1
  scripts "${found[@]}"
  unset HAK_NIGHTLY
}

check_tidy() {
  tools/compile_commands.py --output="$scratch/compile_commands.json" //allocator/... &&
    tools/tidy.py --cache="$cache/tidy" --commands="$scratch/compile_commands.json" "$@"
}

leg_tidy() {
  local together=(--together)
  [[ $all == no ]] || together=()
  check "clang-tidy" check_tidy "${together[@]}"
}

# What a change concerns: its scripts' tests, clang-tidy of its sources, the tests that depend on it.
leg_changed() {
  local changed found
  changed=$(<"$scratch/files")
  tools/changed.py scripts "$base" >"$scratch/scripts"
  mapfile -t found <"$scratch/scripts"
  scripts "${found[@]}"
  if grep -Eq '^allocator/.*\.(cc|h|inc)$' <<<"$changed"; then
    check "clang-tidy, changed sources" check_tidy --changed="$base"
  fi
  if ! tools/changed.py tests "$base" >"$scratch/tests"; then
    count "tests that depend on the change" 0 1 "$SECONDS"
  elif [[ -s $scratch/tests ]]; then
    tests "tests that depend on the change" --target_pattern_file="$scratch/tests"
  fi
  if grep -Eq '^allocator/(.*/)?BUILD$|^tools/check_layering.sh$' <<<"$changed"; then
    check "layering" tools/check_layering.sh "${quiet[@]}"
  fi
}

# --- Bazel's tests -------------------------------------------------------------

# not_at_night [TAG]: the flags that leave out what runs at night alone, and besides tests with a tag.
not_at_night() {
  if [[ $all == yes ]]; then
    echo "--test_env=HAK_TEST_FACTOR=10 --test_env=HAK_NIGHTLY=1"
  else
    echo "--build_tag_filters=-nightly --test_tag_filters=${1:+$1,}-nightly"
  fi
}

leg_tests() {
  # shellcheck disable=SC2046
  tests "tests, clang" $(not_at_night) //...
}

leg_asan() {
  local targets=(//allocator/...)
  [[ $all == no ]] || targets=(//...)
  # shellcheck disable=SC2046
  tests "tests, AddressSanitizer and UBSan" --config=asan_ubsan --build_tests_only $(not_at_night -nosan) "${targets[@]}"
}

# The packages that have no threads have nothing to show to ThreadSanitizer.
leg_tsan() {
  local targets=(//allocator/... -//allocator/base/... -//allocator/history/... -//allocator/options/...
    -//allocator/slab/... -//allocator/statistics/...)
  # Of the tools' tests, which have much to compile, one has threads.
  [[ $all == no ]] || targets=(//... -//tools/... //tools/hakmem:call_trace_test)
  # shellcheck disable=SC2046
  tests "tests, ThreadSanitizer" --config=tsan --build_tests_only $(not_at_night -nosan) -- "${targets[@]}"
}

leg_layering() {
  check "layering" tools/check_layering.sh "${quiet[@]}"
}

# Another compiler makes Bazel configure itself anew.
leg_gcc() {
  local targets=(//allocator:preload_{release,tracing,hardened,debug})
  [[ $all == no ]] || targets=(//...)
  check "build, gcc" "${bazel[@]}" build "${quiet[@]}" --ui_event_filters=-info --config=gcc --keep_going "${targets[@]}"
}

# --- Programs ------------------------------------------------------------------

real_programs() {
  "${bazel[@]}" build "${quiet[@]}" --ui_event_filters=-info //allocator:preload_release &&
    tools/real_programs.sh --library "$PWD/bazel-bin/allocator/libhakmem.so" \
      --cache "$cache/real_programs" "$@"
}

leg_programs() {
  counted "real programs" real_programs "${setup[@]}"
}

leg_stress() {
  tests "stress, 4 million operations a variant" //allocator/testing:stress_long
}

# Each way in which it runs them, once.
leg_loaded() {
  check "CI's tests and scripts, 4 times beside a load" env HAK_CACHE="$cache" tools/flaky.sh 4
}

leg_pgo() {
  check "release-pgo" env HAK_CACHE="$cache" tools/pgo/check.sh
}

leg_installations() {
  counted "installations" env HAK_CACHE="$cache" tools/installations.sh
  sed -n 's/^installations: /  /p' "$scratch/log"
}

leg_newest() {
  counted "newest userland" env HAK_CACHE="$cache" tools/newest_userland.sh
}
