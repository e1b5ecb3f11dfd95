#!/bin/bash
# zlib-ng 2.3.3 (PyPI zlib-ng 1.1.0) beside zlib 1.2.13: the smallest compressor takes
# 137 KiB, where zlib's takes 9.
#
# A good guess: memLevel and windowBits say how much memory a stream takes, by the sum
# in zconf.h, and zlib-ng has the same interface. Servers with a stream for each
# connection, as compressed WebSockets have, set both to their minimum for this. Seen:
# in zlib-ng the hash table has 64 Ki entries of 2 bytes, whatever memLevel is. The
# levels differ by the buffer of the output alone. Decompression for a window of 512
# bytes takes the room of the largest window, too. 10,000 idle connections are 1.3 GiB
# instead of 87 MiB.
#
# Seen: bytes of a compressor with windowBits 15 and memLevel 8: zlib 268237, zlib-ng
# 350984; with 9 and 1: 9144 and 140108; of a decompressor with 9: 7228 and 42181.
#
# Needs python3 (3.9 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install zlib-ng==1.1.0
cat >level.py <<'PYTHON'
import ctypes
import zlib

from zlib_ng import zlib_ng

FIELDS = ("arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks "
          "keepcost").split()


class Figures(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Figures


def used():
    figures = libc.mallinfo2()
    return figures.uordblks + figures.hblkhd


def each(make, count=100):
    before = used()
    streams = [make() for _ in range(count)]
    return (used() - before) // len(streams)


for module in (zlib, zlib_ng):
    def compressor(window, level):
        return lambda: module.compressobj(6, module.DEFLATED, window, level)

    print(each(compressor(15, 8)), each(compressor(9, 1)),
          each(lambda: module.decompressobj(9)), end=" ")
print(zlib.ZLIB_RUNTIME_VERSION, zlib_ng.ZLIBNG_VERSION)
PYTHON
read -r usual least inflate ng_usual ng_least ng_inflate versions \
  < <(venv/bin/python level.py)
echo "bytes of a usual and a least compressor and a least decompressor ($versions):" \
  "zlib $usual $least $inflate, zlib-ng $ng_usual $ng_least $ng_inflate"
((least < 12000 && ng_least > 130000 && ng_usual < usual * 2)) &&
  ((inflate < 10000 && ng_inflate > 35000)) || { echo "not what was seen"; exit 1; }
