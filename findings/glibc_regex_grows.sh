#!/bin/bash
# glibc 2.36 (Debian 12, x86-64): a compiled regular expression grows with the texts
# that are looked at, from 6 KiB to 4 MiB here, for good.
#
# A good guess: regcomp allocates what the expression needs, and regexec, whose argument
# is a "const regex_t*", allocates for one call at most. Seen: regexec makes the states
# of the automaton as a text leads to them, with tables of 2 KiB, and keeps each in the
# regex_t, without a bound. The number of states doubles with each place that a pattern
# counts, and a text of a thousand letters is enough for half of them. A program that
# compiles an expression once keeps all that its texts have led to, until regfree.
#
# Seen: bytes held of malloc by "(a|b)*a[ab]{10}c" after regcomp 5,920, after texts of
# 10, 1,000 and 100,000 letters 50,848, 2,809,536 and 4,701,968, after a hundred texts
# of two letters 4,701,968.
#
# Needs gcc. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >grow.c <<'C'
#include <malloc.h>
#include <regex.h>
#include <stdio.h>

static size_t start;
static regex_t expression;
static char text[100001];

static void Show(void) {
  struct mallinfo2 info = mallinfo2();
  printf("%zu ", info.uordblks + info.hblkhd - start);
}

static void LookAt(int letters) {
  unsigned state = 1;
  for (int i = 0; i < letters; ++i) {
    state = state * 1103515245 + 12345;
    text[i] = "ab"[state >> 16 & 1];
  }
  text[letters] = '\0';
  regexec(&expression, text, 0, NULL, 0);
}

int main(void) {
  printf(" ");
  start = mallinfo2().uordblks;
  if (regcomp(&expression, "(a|b)*a[ab]{10}c", REG_EXTENDED | REG_NOSUB) != 0) return 1;
  Show();
  LookAt(10);
  Show();
  LookAt(1000);
  Show();
  LookAt(100000);
  Show();
  for (int i = 0; i < 100; ++i) LookAt(2);
  Show();
  regfree(&expression);
  Show();
  puts("");
  return 0;
}
C
gcc -O1 -o grow grow.c
read -r compiled short middle long after freed \
  < <(env -u LD_PRELOAD -u GLIBC_TUNABLES LC_ALL=C ./grow)
echo "bytes held by the expression: compiled $compiled, after 10 letters $short," \
  "1,000 $middle, 100,000 $long, after short texts $after, after regfree $freed"
((compiled < 10000 && short < middle && middle > 2000000 && long > 4000000)) &&
  ((after == long && freed < 100000)) || { echo "not what was seen"; exit 1; }
