#!/bin/bash
# gperftools 2.10 (Debian libgoogle-perftools4 2.10-1, x86-64): with HEAPPROFILE a
# forked child and its parent write the same files, and the last one wins.
#
# A good guess: the profile that is left at the end is the parent's, a child's has
# its number in the name (as with massif's %p or jemalloc's prefix). Seen: both count
# dumps from 0001 with the same name. A child that outlives its parent, as daemons
# do, puts its own profile in the place of the parent's; both say on stderr that
# they dump to that file.
#
# Seen: the parent holds 10 blocks of 1 MiB, a child takes 3 more. One file,
# .0001.heap: with 10 blocks when the parent ends last, with 13 when the child does.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libgoogle-perftools4=2.10-1 \
  libunwind8=1.6.2-3
for file in *.deb; do dpkg-deb -x "$file" package; done
library=$(find "$PWD/package" -name libtcmalloc.so.4)
cat >family.c <<'C'
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void Take(int blocks) {
  for (int i = 0; i < blocks; ++i) {
    char* volatile block = malloc(1 << 20);
    memset(block, 1, 1 << 20);
  }
}

int main(int arguments, char** argument) {
  int ends[2];
  (void)argument;
  if (pipe(ends) != 0) return 1;
  Take(10);
  const int parent_is_last = arguments == 1;
  if (fork() == 0) {
    char byte;
    close(ends[1]);
    Take(3);
    // the end of the pipe is read when the parent has ended
    if (!parent_is_last && read(ends[0], &byte, 1) != 0) return 1;
    exit(0);
  }
  if (parent_is_last) wait(NULL);
  exit(0);
}
C
gcc -O0 -o family family.c
Run() {  # prints the files and the blocks in use by the first line of the last
  rm -rf dumps
  mkdir dumps
  HEAPPROFILE=dumps/heap LD_LIBRARY_PATH=$(dirname "$library") LD_PRELOAD=$library \
    ./family "$@" 2>said | cat  # cat ends when the child has ended too
  echo "$(ls dumps | wc -l)" "$(sed -n '1s/^heap profile: *\([0-9]*\):.*/\1/p' dumps/*)"
}
parent=$(Run)
child=$(Run child)
echo "files, blocks in use: the parent ends last $parent, the child ends last $child"
[[ $parent == "1 10" && $child == "1 13" ]] || { echo "not what was seen"; exit 1; }
