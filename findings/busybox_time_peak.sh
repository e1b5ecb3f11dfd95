#!/bin/bash
# BusyBox 1.35.0 (Debian busybox, x86-64): its "time -v" shows four times the peak
# memory of a program.
#
# A good guess: "Maximum resident set size (kbytes)" is the kernel's figure, as GNU
# time's line with the same words is. Seen: getrusage tells KiB on Linux, and BusyBox
# takes the figure for pages and multiplies it by the KiB of a page. So a measurement
# made in a small container differs by four from one on the host. "%M" of a format is
# the same.
#
# Seen: MiB of a program that writes 100: GNU time 100 or 101, BusyBox 402 to 404, by %M
# the same.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'busybox=1:1.35.0-4*' 'time=1.9*'
for file in *.deb; do dpkg-deb -x "$file" package; done
cat >write.c <<'C'
#include <stdlib.h>
#include <string.h>

int main(void) {
  volatile char* block = malloc(100 << 20);
  if (block == NULL) return 1;
  for (size_t at = 0; at < 100 << 20; at += 1024) block[at] = 1;
  return 0;
}
C
gcc -O1 -o write write.c
package/usr/bin/time -o gnu -f %M ./write
package/bin/busybox time -v ./write 2>long
package/bin/busybox time -f %M ./write 2>short
long=$(grep -o 'Maximum resident set size (kbytes): [0-9]*' long)
gnu=$(($(<gnu) >> 10))
verbose=$((${long##* } >> 10))
format=$(($(<short) >> 10))
echo "MiB of peak memory: GNU time $gnu, BusyBox $verbose, by %M $format"
((gnu >= 100 && gnu < 110 && verbose >= 400 && verbose < 440 && format >= 400)) ||
  { echo "not what was seen"; exit 1; }
