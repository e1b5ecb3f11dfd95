#!/bin/bash
# ruby: objects, strings, hashes, symbols, JSON; full is five times small.
source "$(dirname "$0")/common.sh"

work() {
  local rounds=5
  [[ $1 == full ]] || rounds=1
  ruby --disable=gems "$programs/work.rb" "$rounds"
}

main "$@"
