#!/bin/bash
# fastcache 1.12.2 (Go module of VictoriaMetrics, Go 1.26, x86-64): a cache that the
# program drops keeps its memory for ever, and in no figure of Go's.
#
# A good guess: a cache that nothing points to is garbage, as all Go objects are, so a
# new cache in place of the old one frees the old one. Seen: the entries lie in chunks
# that the library maps itself. The collector does not know of them, and takes the
# small object that does. Reset before the drop hands the chunks to the library's list
# for the next caches, and nothing is ever unmapped. HeapAlloc, HeapSys and a heap
# profile have none of this, and GOMEMLIMIT does not count it.
#
# Seen: MiB of RssAnon (and HeapAlloc) more than at first, after each of four caches of
# 64 MiB that were filled and dropped about 65, 130, 195, 260 (0 each time); in a new
# process, with Reset before each drop, 65 to 70 (0) all four times.
#
# Needs go 1.26. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=local GOFLAGS="-mod=mod -modcacherw" GOMODCACHE=$PWD/modules
cat >go.mod <<'MOD'
module dropped
go 1.24
require github.com/VictoriaMetrics/fastcache v1.12.2
MOD
cat >main.go <<'GO'
package main

import (
    "fmt"
    "os"
    "runtime"
    "strings"

    "github.com/VictoriaMetrics/fastcache"
)

// rss gives the MiB of memory without a file.
func rss() int {
    status, _ := os.ReadFile("/proc/self/status")
    _, rest, _ := strings.Cut(string(status), "RssAnon:")
    kib := 0
    fmt.Sscan(rest, &kib)
    return kib >> 10
}

// fill makes a cache, uses all of it, and drops it.
func fill(reset bool) {
    cache := fastcache.New(64 << 20)
    value := make([]byte, 1000)
    for i := 0; i < 100000; i++ {
        cache.Set([]byte(fmt.Sprint(i)), value)
    }
    if reset {
        cache.Reset()
    }
}

func main() {
    before := rss()
    for round := 0; round < 4; round++ {
        fill(len(os.Args) > 1)
        runtime.GC()
        runtime.GC()
        var stats runtime.MemStats
        runtime.ReadMemStats(&stats)
        fmt.Print(rss()-before, " ", stats.HeapAlloc>>20, " ")
    }
    fmt.Println()
}
GO
go build -o dropped . 2>log || { cat log; exit 1; }
read -r -a dropped < <(./dropped)
read -r -a reset < <(./dropped reset)
echo "MiB of RssAnon and of HeapAlloc after each of four caches: dropped" \
  "${dropped[*]}; with Reset ${reset[*]}"
((dropped[0] >= 60 && dropped[4] >= 180 && dropped[6] >= 240 && dropped[7] <= 1)) &&
  ((reset[0] >= 60 && reset[6] < 100 && reset[7] <= 1)) ||
  { echo "not what was seen"; exit 1; }
