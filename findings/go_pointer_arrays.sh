#!/bin/bash
# Go 1.26 (x86-64): an array of 128 pointers takes 1,152 bytes, and one of 128 numbers
# 1,024.
#
# A good guess: sizes that are powers of two have a class of their own, so blocks of 1,
# 2, 4 and 8 KiB waste nothing, and structures are made to such sizes. Seen: from 513
# bytes up a block with pointers in it has eight bytes before it, with its type. So each
# power of two is in the next class, an eighth larger. Blocks above 32 KiB have
# their own pages, and no such bytes. append grows a slice of pointers to 143 elements
# rather than 128, so that the bytes fit in.
#
# Seen: bytes by TotalAlloc for arrays of numbers and of pointers of the same size: 512:
# 512 512; 1024: 1024 1152; 2048: 2048 2304; 4096: 4096 4864; 8192: 8192 9472; 65536:
# 65536 65536.
#
# Needs go 1.26. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module arrays
go 1.24
MOD
cat >main.go <<'GO'
package main

import (
    "fmt"
    "runtime"
)

const count = 1000

var numbers [count][]int
var pointers [count][]*int

// took gives the bytes of each of many calls, without the few of the runtime's own.
func took(call func(i int)) uint64 {
    var before, after runtime.MemStats
    runtime.ReadMemStats(&before)
    for i := 0; i < count; i++ {
        call(i)
    }
    runtime.ReadMemStats(&after)
    return (after.TotalAlloc - before.TotalAlloc) / count / 64 * 64
}

func main() {
    for _, size := range []int{512, 1024, 2048, 4096, 8192, 65536} {
        fmt.Print(took(func(i int) { numbers[i] = make([]int, size/8) }), " ",
            took(func(i int) { pointers[i] = make([]*int, size/8) }), " ")
    }
    fmt.Println()
}
GO
seen=$(GOTOOLCHAIN=local GOFLAGS=-mod=mod go run .)
echo "bytes of arrays of numbers and of pointers ($(go env GOVERSION)): $seen"
want="512 512 1024 1152 2048 2304 4096 4864 8192 9472 65536 65536 "
[[ $seen == "$want" ]] || { echo "not what was seen"; exit 1; }
