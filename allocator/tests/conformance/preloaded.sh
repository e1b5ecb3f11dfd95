#!/bin/bash
# preloaded.sh LIBRARY PROGRAM [ARGS…]: runs the program with the library
# preloaded.
set -euo pipefail
library=$(realpath "$1")
shift
LD_PRELOAD=$library exec "./$@"
