#!/bin/bash
# Pillow 13.0.0 (PyPI, CPython 3.11): a grey image with transparency takes as much as
# one in colours, and an image of black and white eight times its bits.
#
# A good guess: an image takes what tobytes() gives, so a program that turns pictures to
# grey, mode LA, before it keeps them has half of RGBA's memory, and scanned pages of
# mode 1 have an eighth of grey ones. Seen: there are pixels of one byte, of two (I;16
# alone) and of four. All modes with more than one band have four bytes, the three of
# RGB and the two of LA and PA alike, and a bit has a byte. So the conversion to LA
# saves nothing, and that from L to 1 nothing either.
#
# Seen: MiB of malloc and of tobytes() for 4096 by 4096: 1 16 2, L 16 16, LA 64 32, PA
# 64 32, RGB 64 48, RGBA 64 64.
#
# Needs python3 (3.10 to 3.14) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install pillow==13.0.0
cat >modes.py <<'PYTHON'
import ctypes

from PIL import Image

FIELDS = ("arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks "
          "keepcost").split()


class Figures(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


libc = ctypes.CDLL(None)
libc.mallinfo2.restype = Figures


def used():
    figures = libc.mallinfo2()
    return figures.uordblks + figures.hblkhd


for mode in ("1", "L", "LA", "PA", "RGB", "RGBA"):
    before = used()
    image = Image.new(mode, (4096, 4096))
    print(mode, (used() - before) >> 20, len(image.tobytes()) >> 20, end=" ")
    del image
print()
PYTHON
seen=$(venv/bin/python modes.py)
echo "MiB of memory and of bytes by mode: $seen"
[[ $seen == "1 16 2 L 16 16 LA 64 32 PA 64 32 RGB 64 48 RGBA 64 64 " ]] ||
  { echo "not what was seen"; exit 1; }
