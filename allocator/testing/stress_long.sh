#!/bin/bash
# Runs each given stress program for four million operations: all variants take two
# minutes of one processor.
#   stress_long.sh PROGRAM…
set -euo pipefail
(( $# )) || { echo "usage: $0 PROGRAM…" >&2; exit 2; }
seed=100
for program; do
  echo "$program"
  "$program" --ops=4000000 --threads=4 --seed=$((seed++)) --max_mib=1024
done
