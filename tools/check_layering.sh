#!/bin/bash
# Proves that the build refuses what the layers forbid: the whole matrix of who
# sees whom, and one wrong target per rule beside a right one.
set -euo pipefail
cd "$(dirname "$0")/.."
read -ra bazel <<<"${HAK_BAZEL:-bazel}"
options=(--noshow_progress "$@")
tests=//allocator/layering_test
failures=0

fail() {
  echo "layering: $*" >&2
  failures=$((failures + 1))
}

# Which packages may use each layer and room, as allocator/README.md says it.
check_matrix() {
  local layers=(config base platform process stacks options statistics reports failures call_trace
    superslab history slab profile ace lookup guards heap core frontend)
  local -A seen_by=(
    [config]="${layers[*]:1}"
    [base]="${layers[*]:2}"
    [platform]="process stacks options reports failures call_trace superslab history profile ace lookup guards heap core frontend slab"
    [process]="stacks options reports failures call_trace history profile ace lookup guards heap core frontend"
    [stacks]="reports failures call_trace profile guards core frontend"
    [options]="failures frontend"
    [statistics]="profile ace lookup guards heap core frontend"
    [reports]="lookup guards core frontend"
    [failures]="call_trace profile ace lookup guards heap core frontend"
    [call_trace]="frontend"
    [history]="frontend"
    [superslab]="history slab profile ace lookup guards heap core frontend"
    [slab]="profile ace lookup guards heap core frontend"
    [profile]="core frontend"
    [ace]="lookup guards heap core frontend"
    [lookup]="guards core frontend"
    [guards]="core frontend"
    [heap]="core frontend"
    [core]="frontend"
  )
  local layer other from want got
  for other in "${layers[@]}"; do
    from="//allocator/$other:$other"
    [[ $other == frontend ]] && from=//allocator/frontend:common
    got=" $("${bazel[@]}" query --noshow_progress --ui_event_filters=-info \
      "visible($from, set($(printf '//allocator/%s ' "${layers[@]:0:19}")))" |
      sed 's/.*://' | tr '\n' ' ')"
    for layer in "${layers[@]:0:19}"; do
      [[ $layer == "$other" ]] && continue
      want=no
      [[ " ${seen_by[$layer]} " == *" $other "* ]] && want=yes
      if [[ $got == *" $layer "* ]]; then
        [[ $want == yes ]] || fail "$other can see $layer, and must not"
      else
        [[ $want == no ]] || fail "$other cannot see $layer, and must"
      fi
    done
  done
}

must_build() {
  local out
  if ! out=$("${bazel[@]}" build "${options[@]}" "$1" 2>&1); then
    fail "$1 does not build:"
    echo "$out" >&2
  fi
}

# must_fail TARGET PATTERN [OPTION…]
must_fail() {
  local target=$1 pattern=$2 out
  shift 2
  if out=$("${bazel[@]}" build "${options[@]}" "$@" "$target" 2>&1); then
    fail "$target builds, and must not"
  elif ! grep -Eq "$pattern" <<<"$out"; then
    fail "$target fails, but not with '$pattern':"
    echo "$out" >&2
  fi
}

check_matrix
must_build $tests/at_platform:right_downward
must_build $tests/at_platform:right_indirect
must_build $tests/at_reports:right_platform
must_build $tests/at_reports:right_public_header
# These fail at analysis: nothing is compiled.
invisible() { echo "target '//allocator/$1:$1' is not visible from target '$tests/$2'"; }
must_fail $tests/at_platform:wrong_sideward "$(invisible platform at_platform:wrong_sideward)" --nobuild
must_fail $tests/at_platform:wrong_upward "$(invisible core at_platform:wrong_upward)" --nobuild
must_fail $tests/at_reports:wrong_slab "$(invisible slab at_reports:wrong_slab)" --nobuild
# As does a library to preload with a sanitizer, which no program could use.
must_fail //allocator:preload a_program_cannot_preload_a_library_with_sanitizers --nobuild --//tools/build:sanitized
# These fail in the compiler, by layering_check.
must_fail $tests/at_platform:wrong_undeclared \
  "does not (directly )?depend on a module exporting 'allocator/base/bits.h'"
must_fail $tests/at_reports:wrong_private_header \
  "use of private header from outside its module: 'allocator/layering_test/at_reports/private.h'"

(( failures == 0 )) || exit 1
