#!/bin/bash
# Linux 6.18 and vmtouch 1.3.1 (Debian vmtouch 1.3.1-2, x86-64): of a file that one may
# only read, each page is said to be in memory.
#
# A good guess: mincore tells which pages of a mapping are in the page cache, and a tool
# on top of it tells how much of a file is. Seen: since Linux 5.2 mincore answers so
# only to who owns the file or may write it, so as to hide what others read. To all
# others each page is present: 100 %, also of a file of which no page is in memory, and
# there is no error.
#
# Seen: resident pages of 4,096 by vmtouch, all of them dropped before: by the owner 0,
# by another user 4096.
#
# Needs root, setpriv, python3, a temporary folder on a disk (no tmpfs), apt-get (for
# the package's files; nothing is installed), dpkg-deb. Exit status 1: it is not so any
# more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
chmod 755 .
(mkdir debs && cd debs && apt-get -qq -o APT::Sandbox::User=root download \
  vmtouch=1.3.1-2 && dpkg-deb -x ./*.deb ../package)
head -c 16M /dev/zero >file
chmod 644 file
python3 -c '
import os
file = os.open("file", os.O_RDONLY)
os.fsync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)'
resident() {  # COMMAND... before vmtouch
  "$@" package/usr/bin/vmtouch file | sed -n 's, *Resident Pages: \([0-9/]*\).*,\1,p'
}
owner=$(resident env)
other=$(resident setpriv --reuid=65534 --regid=65534 --clear-groups)
echo "resident pages by vmtouch: to the owner $owner, to another user $other"
[[ $owner == 0/4096 && $other == 4096/4096 ]] || { echo "not what was seen"; exit 1; }
