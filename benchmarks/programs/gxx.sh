#!/bin/bash
# g++ compiles a file of templates; small: a short one, for its headers.
source "$(dirname "$0")/common.sh"

inputs() {
  cp "$shared/work.cc" full.cc
  cp "$programs/small.cc" small.cc
}

work() {
  g++-12 -ffile-prefix-map="$PWD"=. -std=c++20 -O0 -pthread -w -c "$1.cc" -o "$1.o"
  sha256sum "$1.o"
}

main "$@"
