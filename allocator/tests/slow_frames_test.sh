#!/bin/bash
# slow_frames_test.sh LIBRARY: of a library whose failed calls begin their call
# stack with a slow half's frame, no slow half ends by a jump to what resolves
# its request: on ARM64 the frame would be gone.
set -euo pipefail
code=$(objdump -d --no-show-raw-insn "$1")
resolve='<[^+>]*Resolve(E[^+>]*Asked|PosixMemalign)[^+>]*>$'
if grep -E "[[:space:]](jmp|b)[[:space:]].*$resolve" <<<"$code"; then
  echo "jumps, and no calls" >&2
  exit 1
fi
calls=$(grep -cE "[[:space:]](call|callq|bl)[[:space:]].*$resolve" <<<"$code")
echo "$calls calls"
(( calls >= 5 ))
