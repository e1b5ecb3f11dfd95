#!/bin/bash
# filtered.sh LIBRARY PROGRAM: under PROGRAM's filter of system calls LIBRARY
# serves, with the samples and records that are taken by default, and with one
# of every allocation.
set -euo pipefail
for options in HAKMEM_STATS= HAKMEM_PROFILE_BYTES=1 HAKMEM_GUARD_SAMPLE=20; do
  said=$(env "$options" LD_PRELOAD="$1" "$2") || { echo "$options: $said, status $?"; exit 1; }
  [[ $said == done || $said == "no filters" ]] || { echo "$options: $said"; exit 1; }
done
