#!/bin/bash
# listening.sh LIBRARY PROGRAM: memory that goes is told of, and stays whole where it is moved.
#
# PROGRAM writes into the code of libc's functions, which libc's own malloc calls, too.
set -euo pipefail
library=$(realpath "$1")
failed=0
for work in mremap events; do
  said=$(LD_PRELOAD=$library "$2" "$work" 2>&1) || true
  if [[ $said != "done" ]]; then
    echo "$work: $said"
    failed=1
  fi
done
exit "$failed"
