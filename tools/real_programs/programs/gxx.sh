# title: g++: compiling, linking and running a program of templates
# serves: cc1plus as ld(\.bfd)? work
# seconds: 300
# needs: g++
set -euo pipefail
# What comes out must not tell where this ran.
cp "$PROGRAMS/work.cc" .
map=-ffile-prefix-map="$PWD"=work
g++ "$map" -std=c++20 -O2 -g -pthread -frandom-seed=1 -c work.cc -o work.o
g++ "$map" -std=c++20 -O0 -frandom-seed=1 -S work.cc -o work.s
g++ -pthread work.o -o work
sha256sum work.o work.s work
./work
