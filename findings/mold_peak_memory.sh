#!/bin/bash
# mold 1.10.1 (Debian mold 1.10.1+dfsg-1, x86-64): a measured link seems to need a
# third of what it needs.
#
# A good guess: time tells a linker's peak memory and processor time, as of ld and
# lld. Seen: mold links in a forked child and ends as soon as the file is whole, while
# the child is still freeing its memory. Nobody waits for the child, so its memory and
# time are in no rusage: not in time's, make's or a batch system's. With --no-fork
# they are.
#
# Seen: a shared library of the whole libstdc++.a: peak 10 MiB, with --no-fork 26 MiB.
#
# Needs g++-12, GNU time, apt-get (for the packages' files; nothing is installed),
# dpkg-deb. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download mold=1.10.1+dfsg-1 \
  libmimalloc2.0=2.0.9+ds-2 libtbb12=2021.8.0-2+deb12u1
for file in *.deb; do dpkg-deb -x "$file" package; done
export LD_LIBRARY_PATH=$PWD/package/usr/lib/x86_64-linux-gnu
archive=$(g++-12 -print-file-name=libstdc++.a)
Link() {  # prints the peak in MiB
  rm -f whole.so
  command time -o peak_kib -f %M package/usr/bin/mold "$@" -shared -o whole.so \
    --whole-archive "$archive"
  [[ -s whole.so ]]
  echo $(($(<peak_kib) >> 10))
}
plain=$(Link)
alone=$(Link --no-fork)
echo "MiB at the peak by time: $plain, with --no-fork $alone"
((plain < 16 && alone > 20)) || { echo "not what was seen"; exit 1; }
