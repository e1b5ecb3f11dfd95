#!/bin/bash
# ncurses 6.4 (Debian libncursesw6, x86-64): a pad for a log of 10,000 lines of 200
# letters takes 56 MB, before there is a letter.
#
# A good guess: a cell has a letter and its attributes, so four bytes, as the chtype of
# curses, or eight with wide letters. Seen: in the wide library, the one with UTF-8,
# each cell has room for five letters, one and four that combine with it, of four bytes
# each, its attributes and its colours: 28 bytes. newpad writes them all, so the memory
# is there at once. A program that is built without wide letters and linked with the
# library has such cells, too. The narrow library's cells have four bytes. Each screen
# has three windows of its own before the program makes one.
#
# Seen: bytes of malloc for a pad of a million cells 28,032,320 with libncursesw, for a
# program built without wide letters too, 4,032,128 with libncurses; bytes of a screen
# of 80 by 24 185,024 and 42,608.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libncurses-dev=6.4-4*' \
  'libncursesw6=6.4-4*' 'libncurses6=6.4-4*' 'libtinfo6=6.4-4*'
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/lib/x86_64-linux-gnu
cat >cells.c <<'C'
#include <malloc.h>
#include <ncursesw/curses.h>
#include <stdio.h>

static size_t Used(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

int main(void) {
  FILE* terminal = fopen("/dev/null", "r+");
  size_t start = Used();
  if (newterm("vt100", terminal, terminal) == NULL) return 1;
  size_t screen = Used();
  if (newpad(1000, 1000) == NULL) return 1;
  fprintf(stderr, "%zu %zu\n", Used() - screen, screen - start);
  return 0;
}
C
Cells() {  # $1: the library, then the compiler's arguments
  gcc -O1 -w -o cells cells.c -Ipackage/usr/include "${@:2}" "$libraries/$1" \
    "$libraries/libtinfo.so.6" -Wl,-rpath,"$libraries"
  env -u LD_PRELOAD -u LINES -u COLUMNS LD_LIBRARY_PATH="$libraries" ./cells 2>&1
}
read -r wide wide_screen < <(Cells libncursesw.so.6 -D_XOPEN_SOURCE_EXTENDED)
read -r built built_screen < <(Cells libncursesw.so.6 -DNCURSES_WIDECHAR=0)
read -r narrow narrow_screen < <(Cells libncurses.so.6 -DNCURSES_WIDECHAR=0)
echo "bytes of a pad of a million cells (and of the screen): wide $wide" \
  "($wide_screen), built without wide letters $built ($built_screen)," \
  "narrow $narrow ($narrow_screen)"
((wide > 28000000 && wide < 29000000 && built == wide && narrow < 4100000)) ||
  { echo "not what was seen"; exit 1; }
