#!/bin/bash
# small_space.sh LIBRARY PROGRAM: in address spaces of 22 to 64 MiB the program
# has its 6 MiB of blocks: what is reserved for guarded ones is a part of them.
set -euo pipefail
library=$(realpath "$1")
for ((mebibytes = 22; mebibytes <= 64; ++mebibytes)); do
  (
    ulimit -v $((mebibytes * 1024))
    LD_PRELOAD="$library" exec "$2"
  ) || {
    echo "$mebibytes MiB: the program ended with $?"
    exit 1
  }
done
