#!/bin/bash
# gdb 13.1 (Debian gdb-minimal 13.1-3, x86-64): a breakpoint's condition with a text in
# it makes the debugged program's heap grow each time that gdb asks it.
#
# A good guess: a condition is gdb's, so its texts lie in gdb's memory, and a program
# that gdb only watches allocates what it always does. Seen: gdb puts the text into the
# program by a call of the program's malloc, so that the program's function can read
# it. Each evaluation makes a new block, and gdb frees none. A condition that never
# holds is a leak, and the program's counts have allocations that are not the program's.
# The arguments of dprintf do the same.
#
# Seen: bytes by which the heap grew in 1,000 visits: a condition on a letter 0, with a
# text of 3 letters 32656, with one of 1,000 letters 1024656; a dprintf 32656.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb, leave to
# trace a child of one's own. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset GLIBC_TUNABLES DEBUGINFOD_URLS
needed=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
  --no-breaks --no-replaces --no-enhances gdb-minimal | grep '^[a-z]' |
  grep -vE '^(libc6|gdb-minimal|debconf.*|cdebconf)$')
apt-get -qq -o APT::Sandbox::User=root download gdb-minimal=13.1-3 $needed
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu:$PWD/package/lib/x86_64-linux-gnu
cat >visits.c <<'C'
#include <malloc.h>
#include <stdio.h>
#include <string.h>

static int Same(const char* a, const char* b) { return strcmp(a, b) == 0; }

static void Visit(const char* name) { __asm__ volatile("" : : "r"(name) : "memory"); }

int main(void) {
  size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) Visit("x");
  printf("grew %zu\n", mallinfo2().uordblks - before);
  return Same("a", "b");
}
C
gcc -g -O0 -o visits visits.c
Grew() {  # $1: gdb's command
  LD_LIBRARY_PATH=$libraries package/usr/bin/gdb -nx -batch \
    -iex 'set auto-load safe-path /' -ex 'unset environment LD_LIBRARY_PATH' \
    -ex "$1" -ex run ./visits 2>/dev/null | sed -n 's/^grew //p'
}
long=$(printf '%01000d' 0)
letter=$(Grew "break Visit if name[0] == 'f'")
text=$(Grew 'break Visit if Same(name, "foo")')
text_long=$(Grew "break Visit if Same(name, \"$long\")")
printed=$(Grew 'dprintf Visit,"%s %s\n", name, "foo"')
echo "bytes by which the heap grew: a letter $letter, a text of 3 letters $text," \
  "of 1,000 letters $text_long, dprintf $printed"
((letter == 0 && text > 30000 && text_long > 1000000 && printed > 30000)) ||
  { echo "not what was seen"; exit 1; }
