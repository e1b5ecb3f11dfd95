#!/bin/sh
# What Bazel asks before each build: the revision that products name.
git() { command git --no-optional-locks "$@" 2>/dev/null; }
[ ! -e .git ] || revision=$(git rev-parse --short=12 HEAD) || revision=
[ -z "$revision" ] || [ -z "$(git status --porcelain --untracked-files=no)" ] || revision=$revision-changed
echo "BUILD_SCM_REVISION ${revision:-unknown}"
