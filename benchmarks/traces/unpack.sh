#!/bin/bash
# Unpacks traces of this folder into the current one: unpack.sh NAME…
# makes NAME.trace of NAME.trace.xz.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[[ $# -gt 0 ]] || {
  echo "usage: unpack.sh NAME…" >&2
  exit 2
}
for name in "$@"; do
  xz -dc "$here/$name.trace.xz" >"$name.trace"
done
