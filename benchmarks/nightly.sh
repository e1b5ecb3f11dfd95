#!/bin/bash
# The nightly job: bazel run //benchmarks:nightly -- --out DIR
# --help says what else it takes.
set -euo pipefail
cd "${BUILD_WORKSPACE_DIRECTORY:?bazel run //benchmarks:nightly sets it}"
exec tools/bench nightly "$@"
