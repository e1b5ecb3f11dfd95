#!/bin/bash
# go.starlark.net of 2026-09-08 (Go module, Go 1.26, Linux x86-64): a program that
# imports Starlark has 4 GiB of addresses more before main, and a million numbers take
# no memory.
#
# A good guess: an interpreter takes memory when it runs something, and a number in an
# interface of Go's is a block of its own. Seen: the package reserves 4 GiB without
# access when the program starts, and a number of 32 bits is an address in there, so it
# fits into an interface as it is. Under a limit of addresses (ulimit -v) the program
# prints a warning on standard error, even if it never uses the package, and each number
# takes a block, about 40 bytes.
#
# Seen: MiB of VmSize, with the package 4,112 more than without; MiB of TotalAlloc for a
# million numbers 0; under ulimit -v of 3,000,000: 16 MiB of VmSize more, 38 MiB, and
# "failed to allocate 4GB address space".
#
# Needs go 1.26. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export GOTOOLCHAIN=local GOFLAGS="-mod=mod -modcacherw" GOMODCACHE=$PWD/modules
cat >go.mod <<'MOD'
module addresses
go 1.25.0
require go.starlark.net v0.0.0-20260908191801-89a6a09411d5
MOD
mkdir plain numbers
cat >plain/main.go <<'GO'
package main

import (
    "fmt"
    "os"
    "strings"
)

func main() {
    status, _ := os.ReadFile("/proc/self/status")
    _, rest, _ := strings.Cut(string(status), "VmSize:")
    kib := 0
    fmt.Sscan(rest, &kib)
    fmt.Println(kib >> 10)
}
GO
cat >numbers/main.go <<'GO'
package main

import (
    "fmt"
    "os"
    "runtime"
    "strings"

    "go.starlark.net/starlark"
)

var kept [1000000]starlark.Value

func main() {
    status, _ := os.ReadFile("/proc/self/status")
    _, rest, _ := strings.Cut(string(status), "VmSize:")
    kib := 0
    fmt.Sscan(rest, &kib)
    var before, after runtime.MemStats
    runtime.ReadMemStats(&before)
    for i := range kept {
        kept[i] = starlark.MakeInt(i)
    }
    runtime.ReadMemStats(&after)
    fmt.Println(kib>>10, (after.TotalAlloc-before.TotalAlloc)>>20)
}
GO
for name in plain numbers; do
  go build -o "$name.out" "./$name" 2>log || { cat log; exit 1; }
done
# A limit on the shell would be in the way of the packages.
plain=$(./plain.out)
read -r with allocated < <(./numbers.out)
read -r limited blocks < <(ulimit -v 3000000; ./numbers.out 2>warning)
warning=$(grep -o 'failed to allocate 4GB address space' warning || true)
echo "MiB of VmSize without Starlark $plain, with it $with, limited $limited; a" \
  "million numbers $allocated MiB, limited $blocks; warning: $warning"
((with - plain > 4090 && with - plain < 4200 && allocated <= 1)) &&
  ((limited - plain < 100 && blocks > 30)) && [[ -n $warning ]] ||
  { echo "not what was seen"; exit 1; }
