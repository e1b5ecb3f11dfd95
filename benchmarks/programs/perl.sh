#!/bin/bash
# perl: hashes, nested structures, regular expressions, threads, fork.
source "$(dirname "$0")/common.sh"

# The order of its keys decides how a hash grows and what is freed when.
work() { PERL_HASH_SEED=0 PERL_PERTURB_KEYS=0 perl "$shared/work.pl"; }

main "$@"
