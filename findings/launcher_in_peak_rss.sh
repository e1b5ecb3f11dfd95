#!/bin/bash
# mimalloc 2.0.9 (Debian libmimalloc2.0 2.0.9+ds-2, x86-64) and pyperf 2.8.1 (PyPI):
# the peak memory that they report is that of the process which started the one
# measured, where that was larger.
#
# A good guess: ru_maxrss of a process begins anew with execve, so statistics
# printed at exit are about the program that ran. Seen: Linux carries the
# launcher's peak through fork and execve. mimalloc's MIMALLOC_SHOW_STATS prints it
# as "rss", and pyperf's command --track-memory as the memory of the command, which
# for a small program is that of pyperf's own Python. VmHWM in /proc/PID/status
# begins anew.
#
# Seen: rss of one and the same "true": 14 MiB started from a small Python, 213 from
# one that holds 200 MiB; VmHWM 1 MiB both times. pyperf: true takes 12 MiB.
#
# Needs python3 with venv, apt-get (for the package's file; nothing is installed),
# dpkg-deb, gcc. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libmimalloc2.0=2.0.9+ds-2
dpkg-deb -x libmimalloc2.0_*.deb package
library=$(find "$PWD/package" -name 'libmimalloc.so.2.0' | head -n 1)
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install pyperf==2.8.1 psutil==6.1.1
cat >small.c <<'C'
#include <stdio.h>
#include <string.h>

int main(void) {
  char line[256];
  FILE* status = fopen("/proc/self/status", "r");
  if (status == NULL) return 1;
  long peak = 0;
  while (fgets(line, sizeof(line), status) != NULL) {
    sscanf(line, "VmHWM: %ld", &peak);
  }
  printf("%ld\n", peak >> 10);
  return 0;
}
C
gcc -O1 -o small small.c
cat >start.py <<'PYTHON'
import re
import subprocess
import sys

held = b"x" * (int(sys.argv[1]) << 20)
ran = subprocess.run(
    ["./small"],
    env={"LD_PRELOAD": sys.argv[2], "MIMALLOC_SHOW_STATS": "1"},
    capture_output=True,
    text=True,
    check=True,
)
rss = re.search(r"rss: ([0-9.]+) MiB", ran.stdout + ran.stderr)[1]
print(int(float(rss)), int(ran.stdout.split()[0]))
PYTHON
read -r small small_hwm < <(python3 start.py 0 "$library")
read -r large large_hwm < <(python3 start.py 200 "$library")
echo "mimalloc's rss, VmHWM in MiB: from a small launcher $small $small_hwm," \
  "from one that holds 200 MiB $large $large_hwm"
pyperf=$(venv/bin/python -m pyperf command --track-memory -q -p1 -n1 -w0 ./small |
  sed -n 's/^command: \([0-9]*\).* MiB.*/\1/p')
echo "pyperf's memory of the same program: $pyperf MiB"
((small < 50 && large >= 200 && small_hwm < 5 && large_hwm < 5 && pyperf > 5)) ||
  { echo "not what was seen"; exit 1; }
