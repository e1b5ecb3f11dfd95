#!/bin/bash
# clearing_test.sh LIBRARY: free, of a variant that clears what is freed, has no
# `rep stos` and, on ARM64, no `setp`; nor does it call memset, which may be the
# library's own. Compilers make these of the clearing of short blocks, if they
# may, and they take longer than stores.
set -euo pipefail
for name in free free_sized; do
  code=$(objdump -d --no-show-raw-insn --disassemble="$name" "$1")
  grep -q "<$name>:" <<<"$code"
  if grep -E "rep stos|set[pme][tn]*[[:space:]]+\[|memset" <<<"$code"; then
    echo "$name does not clear by stores" >&2
    exit 1
  fi
done
