#!/bin/bash
# memcached 1.6.18 (Debian memcached 1.6.18-1+deb12u*, x86-64): with a limit of 2 MiB it
# takes 38 MiB for 42 items.
#
# A good guess: -m is the memory for items, as the manual page says, and at the limit
# old items go. Seen: items of like size share a class, and each class gets a page of 1
# MiB for its first item, whatever the limit says. So the least is a page for each class
# that an item ever fell into, up to 38 MiB with the default growth. limit_maxbytes is
# still 2 MiB, and nothing was evicted. A cache of a few megabytes beside each service
# takes ten times its setting.
#
# Seen: -m 2, 42 items of 48 bytes to 450 KB, one for each step of a quarter:
# limit_maxbytes 2097152, total_malloced 39845888, items 42, evictions 0.
#
# Needs python3, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server"; rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'memcached=1.6.18-1+deb12u*' \
  libevent-2.1-7
for file in *.deb; do dpkg-deb -x "$file" package; done
export LD_LIBRARY_PATH=$PWD/package/usr/lib/x86_64-linux-gnu
user=()
((EUID != 0)) || user=(-u root)
env -u LD_PRELOAD package/usr/bin/memcached -m 2 -s "$folder/socket" "${user[@]}" &
server=$!
until [[ -S socket ]]; do kill -0 "$server"; done
cat >fill.py <<'PYTHON'
import os
import socket
import sys

link = socket.socket(socket.AF_UNIX)
while link.connect_ex("socket") != 0:
    os.kill(int(sys.argv[1]), 0)
stream = link.makefile("rwb")


def ask(text):
    stream.write(text)
    stream.flush()
    return stream.readline().decode().strip()


def figures(command):
    line, found = ask(command), {}
    while line != "END":
        _, name, value = line.split()
        found[name] = value
        line = stream.readline().decode().strip()
    return found


size = 48
while size < 500000:
    data = b"a" * int(size)
    if ask(b"set key%d 0 0 %d\r\n%s\r\n" % (size, len(data), data)) != "STORED":
        raise SystemExit(1)
    size *= 1.25
all_, slabs = figures(b"stats\r\n"), figures(b"stats slabs\r\n")
print(all_["limit_maxbytes"], slabs["total_malloced"], all_["curr_items"],
      all_["evictions"])
PYTHON
seen=$(python3 fill.py "$server")
echo "limit_maxbytes, total_malloced, curr_items, evictions: $seen"
read -r limit malloced items evictions <<<"$seen"
((limit == 2097152 && malloced > 30000000 && items == 42 && evictions == 0)) ||
  { echo "not what was seen"; exit 1; }
