#!/bin/bash
# Go 1.19.8 (Debian golang-1.19-go 1.19.8-2; go1.26 does the same): the text of a heap
# profile has other bytes than the profile.
#
# A good guess: /debug/pprof/heap?debug=1 is the same profile in a form for people,
# so "inuse: bytes" there are the bytes that pprof shows. Seen: the text has what
# was sampled, with nothing made up for what was not; the binary form and pprof
# (also when it reads the text) have it scaled. Of objects of 1 KiB with the default
# rate of 512 KiB the text tells about a 512th in objects and bytes, of objects of
# some MiB all. So places change their order, too. The end of the text has
# HeapAlloc, which is whole.
#
# Seen: 100,000 objects of 1 KiB (97 MiB): by the text's first line 2 or 3 MiB, by
# pprof from the same text and from the binary form 88 or 102 (sampled), HeapAlloc
# 101.
#
# Needs apt-get (for the packages' files, 80 MB; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download golang-1.19-go=1.19.8-2 \
  golang-1.19-src=1.19.8-2
for file in *.deb; do dpkg-deb -x "$file" package; done
export GOROOT=$PWD/package/usr/lib/go-1.19
export GOCACHE=$PWD/cache GOPATH=$PWD/path GOENV=off GOTOOLCHAIN=local CGO_ENABLED=0
export PPROF_TMPDIR=$PWD
cat >small.go <<'GO'
package main

import (
    "os"
    "runtime"
    "runtime/pprof"
)

var kept [][]byte

func main() {
    for i := 0; i < 100000; i++ {
        kept = append(kept, make([]byte, 1024))
    }
    runtime.GC() // the profile is that of the last collection but one
    runtime.GC()
    for form, name := range []string{"binary", "text"} {
        file, err := os.Create(name)
        if err != nil {
            panic(err)
        }
        pprof.Lookup("heap").WriteTo(file, form)
        file.Close()
    }
    runtime.KeepAlive(kept)
}
GO
"$GOROOT/bin/go" run small.go
Shown() {  # MiB, as pprof shows the profile
  local bytes
  bytes=$("$GOROOT/bin/go" tool pprof -sample_index=inuse_space -unit=b -top "$1" \
    2>/dev/null | sed -n 's/.* of \([0-9]*\)B total.*/\1/p')
  echo $((bytes >> 20))
}
read -r _ _ _ bytes _ <text  # heap profile: OBJECTS: BYTES [...
line=$((bytes >> 20)) text=$(Shown text) binary=$(Shown binary)
whole=$(($(sed -n 's/^# HeapAlloc = //p' text) >> 20))
echo "MiB of 97: the text's first line $line, pprof of the text $text, pprof of the" \
  "binary form $binary, HeapAlloc $whole"
((line < 10 && text > 60 && binary > 60 && whole > 90)) ||
  { echo "not what was seen"; exit 1; }
