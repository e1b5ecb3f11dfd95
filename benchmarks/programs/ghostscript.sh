#!/bin/bash
# ghostscript renders pages of text, curves, gradients and clipped patterns,
# in colour, and then writes them as PDF and renders that.
source "$(dirname "$0")/common.sh"

inputs() { cp "$programs/pages.ps" .; }

work() {
  local resolution=90
  [[ $1 == full ]] || resolution=30
  local options=(-q -dSAFER -dBATCH -dNOPAUSE -dTextAlphaBits=4 -dGraphicsAlphaBits=4)
  gs "${options[@]}" -sDEVICE=ppmraw -r$resolution -sOutputFile=direct-%d.ppm pages.ps
  gs -q -dSAFER -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -sOutputFile=pages.pdf pages.ps
  gs "${options[@]}" -sDEVICE=ppmraw -r$resolution -sOutputFile=again-%d.ppm pages.pdf
  sha256sum direct-*.ppm again-*.ppm
}

main "$@"
