#!/bin/bash
# descriptors.sh PROGRAM LIBRARY: the program's heap grows, and the preloaded
# library opens no file, which would take a descriptor that another thread
# counts on, and more stack than a coroutine may have.
set -euo pipefail
library=$(realpath "$2")
for place in thread coroutine; do
  said=$(env LD_PRELOAD="$library" "$1" "$place")
  [[ $said == "grown" || $said == "no filters" ]] || {
    echo "$place: '$said'"
    exit 1
  }
done
