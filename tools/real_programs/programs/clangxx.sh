# title: clang++: compiling, linking with lld and running a program of templates
# serves: clang(\+\+)?(-19)? (ld\.)?lld(-19)? work
# seconds: 300
# needs: clang++-19 ld.lld-19
set -euo pipefail
# Else lld ends by _exit, and says nothing of its allocations.
export LLD_IN_TEST=1
# What comes out must not tell where this ran.
cp "$PROGRAMS/work.cc" .
map=-ffile-prefix-map="$PWD"=work
clang++-19 "$map" -std=c++20 -O2 -g -pthread -c work.cc -o work.o
clang++-19 "$map" -std=c++20 -O0 -S -emit-llvm work.cc -o work.ll
clang++-19 -fuse-ld=lld-19 -pthread work.o -o work
sha256sum work.o work.ll work
./work
