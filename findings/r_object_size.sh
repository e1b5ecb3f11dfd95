#!/bin/bash
# R 4.2.2 (Debian r-base-core 4.2.2.20221110-2, x86-64): object.size of 1:1e9 is 4 GB,
# of a vector that has no memory, and a list that has one vector eight times is eight
# vectors.
#
# A good guess: object.size is what an object takes, as its help says ("the memory that
# is being used to store an R object"). Seen: a sequence is kept as its two ends until
# somebody writes to it, and object.size tells what it would take. What is shared is
# counted each time. So the one is told of 4 GB that are not there, the other of eight
# times what is.
#
# Seen: 1:1e9: 4,000,000,048 bytes, MiB in memory 0 to 9; a list of eight times one
# vector of 8,000,048 bytes: 64,000,496 bytes.
#
# Needs apt-get (for the packages' files, 50 MB; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download r-base-core=4.2.2.20221110-2 libblas3 \
  liblapack3 libgfortran5 libquadmath0 libtre5 libgomp1 libdeflate0 libicu72
for file in *.deb; do dpkg-deb -x "$file" package; done
export R_HOME=$PWD/package/usr/lib/R
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
export EDITOR=vi PAGER=cat
export LD_LIBRARY_PATH=$R_HOME/lib:$libraries:$libraries/blas:$libraries/lapack
cat >size.R <<'R'
resident <- function() {
  as.numeric(strsplit(readLines("/proc/self/statm"), " ")[[1]][2]) %/% 256
}
invisible(utils::object.size(1))
before <- resident()
sequence <- 1:1e9
size <- format(unclass(utils::object.size(sequence)), scientific = FALSE)
took <- resident() - before
vector <- rep(0.5, 1e6)
shared <- list(vector, vector, vector, vector, vector, vector, vector, vector)
cat(size, took, unclass(utils::object.size(vector)),
    unclass(utils::object.size(shared)), "\n")
R
read -r size took vector shared < <("$R_HOME/bin/exec/R" --vanilla --no-echo -f size.R |
  tail -n 1)
echo "object.size of 1:1e9 $size with $took MiB in memory; of a vector $vector," \
  "of a list of eight times that $shared"
((size > 3900000000 && took < 50 && vector < 8100000 && shared > 7 * vector)) ||
  { echo "not what was seen"; exit 1; }
