# title: perl: strings, hashes, regular expressions, sorting, threads, fork
# serves: perl
# seconds: 120
# needs: perl
set -euo pipefail
export PERL_HASH_SEED=0
perl "$PROGRAMS/work.pl"
