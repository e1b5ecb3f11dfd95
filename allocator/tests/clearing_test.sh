#!/bin/bash
# clearing_test.sh LIBRARY: free, of a variant that clears what is freed, has no
# `rep stos`. gcc makes it of the clearing of short blocks, if it may, and it
# takes longer than stores.
set -euo pipefail
for name in free free_sized; do
  code=$(objdump -d --no-show-raw-insn --disassemble="$name" "$1")
  grep -q "<$name>:" <<<"$code"
  if grep "rep stos" <<<"$code"; then
    echo "$name clears by rep stos" >&2
    exit 1
  fi
done
