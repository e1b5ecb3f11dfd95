#!/bin/bash
# Go 1.26 (x86-64): a bytes.Buffer that was made for a file's size takes the file's size
# twice more to read it.
#
# A good guess: a buffer that has room for n bytes reads n bytes without growth, so
# Grow(size) or make([]byte, 0, size) before ReadFrom or io.Copy saves all copies.
# Seen: to learn that there is no more, ReadFrom wants 512 free bytes after the last
# one, and if they are not there, the buffer grows to twice its capacity and is copied.
# Both are there at once. 512 bytes more at the start take nothing, and 511 take all.
# os.ReadFile keeps to the size.
#
# Seen: MiB allocated (TotalAlloc) and of capacity for a file of 64 MiB: a buffer of its
# size 192 128, with 511 bytes more 192 128, with 512 more 64 64, io.Copy after Grow
# 192 128, os.ReadFile 64 64.
#
# Needs go 1.26. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >go.mod <<'MOD'
module full
go 1.24
MOD
cat >main.go <<'GO'
package main

import (
    "bytes"
    "fmt"
    "io"
    "os"
    "runtime"
)

const size = 64 << 20

// show prints the MiB that a way to read allocates, and the MiB that it ends with.
func show(read func(file *os.File) []byte) {
    file, err := os.Open("file")
    if err != nil {
        panic(err)
    }
    defer file.Close()
    var before, after runtime.MemStats
    runtime.ReadMemStats(&before)
    data := read(file)
    runtime.ReadMemStats(&after)
    if len(data) != size {
        panic("not all was read")
    }
    fmt.Print((after.TotalAlloc-before.TotalAlloc)>>20, " ", cap(data)>>20, " ")
}

func made(capacity int) func(file *os.File) []byte {
    return func(file *os.File) []byte {
        buffer := bytes.NewBuffer(make([]byte, 0, capacity))
        buffer.ReadFrom(file)
        return buffer.Bytes()
    }
}

func main() {
    if err := os.WriteFile("file", make([]byte, size), 0o600); err != nil {
        panic(err)
    }
    show(made(size))
    show(made(size + 511))
    show(made(size + 512))
    show(func(file *os.File) []byte {
        var buffer bytes.Buffer
        buffer.Grow(size)
        io.Copy(&buffer, file)
        return buffer.Bytes()
    })
    show(func(file *os.File) []byte {
        data, _ := os.ReadFile("file")
        return data
    })
    fmt.Println()
}
GO
seen=$(GOTOOLCHAIN=local GOFLAGS=-mod=mod go run .)
echo "MiB allocated and of capacity for a file of 64 MiB ($(go env GOVERSION)): made" \
  "for its size, with 511 bytes more, with 512 more, Grow, os.ReadFile: $seen"
[[ $seen == "192 128 192 128 64 64 192 128 64 64 " ]] ||
  { echo "not what was seen"; exit 1; }
