# title: g++: compiling, linking and running a program of templates
# serves: cc1plus as ld(\.bfd)? work
# seconds: 300
# needs: g++
set -euo pipefail
g++ -std=c++20 -O2 -g -pthread -frandom-seed=1 -c "$PROGRAMS/work.cc" -o work.o
g++ -std=c++20 -O0 -frandom-seed=1 -S "$PROGRAMS/work.cc" -o work.s
g++ -pthread work.o -o work
sha256sum work.o work.s work
./work
