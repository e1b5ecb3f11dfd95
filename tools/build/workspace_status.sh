#!/bin/sh
# What Bazel asks before each build: the revision that products name.
[ ! -e .git ] || revision=$(git describe --always --abbrev=12 --dirty=-changed --exclude='*' 2>/dev/null)
echo "BUILD_SCM_REVISION ${revision:-unknown}"
