#!/bin/bash
# Runs each given stress program for its share of two minutes.
#   stress_two_minutes.sh PROGRAM…
set -euo pipefail
(( $# )) || { echo "usage: $0 PROGRAM…" >&2; exit 2; }
share=$((120 / $#))
seed=100
for program; do
  echo "$program"
  "$program" --seconds="$share" --threads=4 --seed=$((seed++)) --max_mib=1024
done
