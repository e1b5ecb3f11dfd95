#!/bin/bash
# keys.sh KEYS PROGRAM [PROGRAM LIBRARY]: the program has so many keys for its
# threads' data, and works when it has taken them all before its first malloc;
# also the second one, with the library preloaded.
set -euo pipefail
"$2" count "$1"
"$2" take
if (($# > 2)); then
  library=$(realpath "$4")
  env LD_PRELOAD="$library" "$3" count "$1"
  env LD_PRELOAD="$library" "$3" take
fi
