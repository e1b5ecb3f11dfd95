#!/bin/bash
# sampled.sh PRELOADED.SH LIBRARY PROGRAM: as preloaded.sh, with a sample of
# every allocation kept for the heap profile. Left out is what is not so of
# sampled blocks: that their profile takes part of a limited address space.
set -euo pipefail
export HAKMEM_PROFILE_BYTES=1
exec "$@" --gtest_filter=-Fills/UnderLimit.OfAddressSpace/*
