#!/bin/bash
# The example runs, and each kind of block it asked for came from hakmem.
set -euo pipefail
output=$("$1")
echo "$output"
grep -Eq '^hakmem [0-9]+\.[0-9]+\.[0-9]+, (release|tracing|hardened|debug)$' <<<"$output"
for route in tiny pool span huge; do
  grep -Eq "^$route +[1-9][0-9]* calls +[1-9][0-9]* bytes$" <<<"$output"
done
grep -Eq '^mapped [1-9][0-9]* bytes, 0 failures$' <<<"$output"
