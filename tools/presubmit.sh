#!/bin/bash
# What to run before each commit: format, lint, clang-tidy on what has changed,
# and all tests in the default configuration.
set -euo pipefail
exec "$(dirname "$0")/test.sh" --quick "$@"
