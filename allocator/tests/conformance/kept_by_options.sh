#!/bin/bash
# kept_by_options.sh PRELOADED LIBRARY DEEP_BIND PLUGIN SYMBOLIC SYMBOLIC_LIBRARY:
# what hakmem does for the sake of some libraries, and options that have it
# leave that.
set -euo pipefail
preloaded=$1 library=$2 deep_bind=$3 plugin=$4 symbolic=$5 symbolic_library=$6

"$preloaded" "$library" "$deep_bind" "$plugin" hakmem
HAKMEM_DEEP_BIND=1 "$preloaded" "$library" "$deep_bind" "$plugin" libc
"$preloaded" "$library" "$deep_bind" "$plugin" hakmem first
HAKMEM_DEEP_BIND=1 "$preloaded" "$library" "$deep_bind" "$plugin" libc first

code=0
said=$(HAKMEM_CHECK_KINDS=1 "$preloaded" "$library" "$symbolic" "$symbolic_library" 2>&1) || code=$?
case $library in
  *-hardened.so | *-debug.so)
    if ((code != 134)) || [[ $said != *"fatal: mismatched free"* ]]; then
      echo "kinds are not checked where that is asked for: exit status $code, $said" >&2
      exit 1
    fi
    ;;
  *)
    ((code == 0)) || { echo "$said" >&2; exit 1; }
    ;;
esac
