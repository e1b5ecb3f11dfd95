#!/bin/bash
# build_settings_test.sh LIBRARY OTHER: the first names its revision; the second was built
# with a first refill of 24 blocks, says so, and refills its magazines less often.
set -euo pipefail
fail() {
  echo "$*" >&2
  exit 1
}

# of LIBRARY: the first line of HAKMEM_SHOW_CONFIG
build() {
  HAKMEM_SHOW_CONFIG=1 LD_PRELOAD=$1 /bin/bash -c : 2>&1 >/dev/null | head -n 1
}

# of LIBRARY: the refills of one and the same program
refills() {
  HAKMEM_STATS=1 LD_PRELOAD=$1 /bin/bash -c : 2>&1 >/dev/null |
    grep -oE '"refills_from_[a-z]+_slabs":[0-9]+' | awk -F: '{ sum += $2 } END { print sum }'
}

plain=$(build "$1")
other=$(build "$2")
[[ $plain =~ ,\ revision\ ([0-9a-f]{12}(-changed)?|unknown)$ ]] || fail "no revision: $plain"
[[ $plain != *"first refill"* ]] || fail "a first refill that nobody set: $plain"
[[ $other == *", first refill 24, "* ]] || fail "no first refill of 24: $other"
(($(refills "$2") < $(refills "$1"))) || fail "$(refills "$2") refills with 24, $(refills "$1") with 8"
