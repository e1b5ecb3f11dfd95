#!/bin/bash
# z3 solves generated problems: bit vectors, integers, uninterpreted functions,
# a schedule, and a puzzle that has no solution.
source "$(dirname "$0")/common.sh"

inputs() { python3 -s "$programs/problems.py" full small; }

work() {
  local problem
  for problem in "$1"-*.smt2; do
    z3 -smt2 smt.random_seed=1 sat.random_seed=1 "$problem"
  done
}

main "$@"
