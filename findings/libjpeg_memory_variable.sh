#!/bin/bash
# libjpeg-turbo 2.1.5 (Debian libjpeg62-turbo 1:2.1.5-2, x86-64): a variable of the
# environment that bounds memory makes each program that uses the library refuse
# pictures.
#
# A good guess: JPEGMEM is an option of cjpeg and djpeg, and with less memory they use
# files, as the IJG's code did. Seen: the library itself reads it, in each program
# that decodes a picture, and Debian's has no files to use. A baseline picture needs a
# few rows and is fine; a progressive one of the same size needs all coefficients, and
# ends with "Backing store not supported". The unit is 1,000 bytes, with an M behind
# it 1,000,000.
#
# Seen: 2,000 × 2,000 grey pixels (4 MB), decoded by a program of ten lines that never
# heard of it: baseline with JPEGMEM=1000 fine; progressive without it fine, with
# JPEGMEM=1000 the error, with JPEGMEM=20M fine.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'libjpeg62-turbo=1:2.1.5-*' \
  'libjpeg62-turbo-dev=1:2.1.5-*' 'libjpeg-turbo-progs=1:2.1.5-*'
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries
cat >decode.c <<'C'
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

int main(int arguments, char** argument) {
  static JSAMPLE row[2000];
  JSAMPROW rows[1] = {row};
  struct jpeg_error_mgr errors;
  struct jpeg_decompress_struct picture;
  FILE* file = arguments > 1 ? fopen(argument[1], "rb") : NULL;
  if (file == NULL) return 2;
  picture.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&picture);
  jpeg_stdio_src(&picture, file);
  jpeg_read_header(&picture, TRUE);
  jpeg_start_decompress(&picture);
  while (picture.output_scanline < picture.output_height) {
    jpeg_read_scanlines(&picture, rows, 1);
  }
  jpeg_destroy_decompress(&picture);
  puts("fine");
  return 0;
}
C
gcc -O1 -o decode decode.c -Ipackage/usr/include \
  -Ipackage/usr/include/x86_64-linux-gnu "$libraries/libjpeg.so.62"
{ echo P5 2000 2000 255; head -c 4000000 /dev/zero; } >grey.pgm
package/usr/bin/cjpeg grey.pgm >baseline.jpg
package/usr/bin/cjpeg -progressive grey.pgm >progressive.jpg
seen="$(JPEGMEM=1000 ./decode baseline.jpg 2>&1 || true), $(
  ./decode progressive.jpg), $(JPEGMEM=1000 ./decode progressive.jpg 2>&1 || true), $(
  JPEGMEM=20M ./decode progressive.jpg)"
echo "baseline with 1000, progressive without, with 1000, with 20M: $seen"
[[ $seen == "fine, fine, Backing store not supported, fine" ]] ||
  { echo "not what was seen"; exit 1; }
