#!/bin/bash
# guarded.sh PRELOADED.SH LIBRARY PROGRAM: as preloaded.sh, with every
# allocation guarded until the slots are used up. Left out is what is not so of
# guarded blocks: frees by another thread than the owner's are not counted (they
# have no owner), none is made ready ahead, and the pool takes a part of a
# limited address space.
set -euo pipefail
export HAKMEM_GUARD_SAMPLE=1
filter=HakmemHeader.CountsFailuresAndRemoteFrees
filter+=:HakmemHeader.PrewarmMakesBlocksReady
filter+=:Options.PrewarmHasBlocksReadyBeforeTheProgramStarts
filter+=:Fills/UnderLimit.OfAddressSpace/*
exec "$@" --gtest_filter="-$filter"
