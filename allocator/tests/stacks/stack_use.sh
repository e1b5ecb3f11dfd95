#!/bin/bash
# stack_use.sh LIBRARY PROGRAM: no call takes more than 4 KiB of stack. Samples
# are taken so often that the deepest path is one of them.
set -euo pipefail
env LD_BIND_NOW=1 LD_PRELOAD="$(realpath "$1")" HAKMEM_PROFILE_BYTES=4096 HAKMEM_GUARD_SAMPLE=20 "$2" 4096
