#!/bin/bash
# UCX 1.13.1 (Debian libucx0 1.13.1-1, x86-64): to load the library writes jumps over
# libc's code, and an allocator that calls the kernel itself is not heard.
#
# A good guess: a library that has to know when memory goes back, as a cache of memory
# registered with a network card does, puts its own munmap before libc's by the usual
# search for symbols, when a program asks for it. Seen: UCX overwrites the first bytes
# of munmap, mmap, mremap, madvise, brk and others inside of libc, as soon as it is
# loaded. So calls from any library are heard. A call that does not pass these functions
# is not: syscall(SYS_munmap), or the instruction. An allocator that goes that way has to
# call libc's functions for UCX, or the cache goes on with memory that is gone.
#
# Seen: KiB that UCX's event of unmapped memory tells of 1 MiB given back by munmap
# 1024, madvise 1024, mmap over it 1024, syscall(SYS_munmap) 0, the instruction 0; the
# first byte of munmap is e9, a jump, before the program has asked for any event.
#
# Needs gcc, apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit
# status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download libucx0=1.13.1-1 libucx-dev=1.13.1-1 \
  libnuma1
for file in *.deb; do dpkg-deb -x "$file" package; done
libraries=$PWD/package/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH=$libraries
cat >events.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucm/api/ucm.h>
#include <unistd.h>

enum { kBytes = 1 << 20 };
static volatile size_t told;

static void Hear(ucm_event_type_t type, ucm_event_t* event, void* argument) {
  (void)argument;
  if (type == UCM_EVENT_VM_UNMAPPED) told += event->vm_unmapped.size;
}

static void* Map(void* wish, int flags) {
  return mmap(wish, kBytes, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void Show(void) {
  printf("%zu ", told >> 10);
  told = 0;
}

int main(void) {
  const unsigned char* code = dlsym(RTLD_DEFAULT, "munmap");
  printf("%02x ", code[0]);
  void* memory[5];
  for (int i = 0; i < 5; ++i) memory[i] = Map(NULL, 0);
  if (ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED, 0, Hear, NULL) != UCS_OK) return 1;
  told = 0;
  munmap(memory[0], kBytes);
  Show();
  madvise(memory[1], kBytes, MADV_DONTNEED);
  Show();
  Map(memory[2], MAP_FIXED);
  Show();
  syscall(SYS_munmap, memory[3], kBytes);
  Show();
  long answer = SYS_munmap;
  __asm__ volatile("syscall"
                   : "+a"(answer)
                   : "D"(memory[4]), "S"((long)kBytes)
                   : "rcx", "r11", "memory");
  Show();
  return (int)answer;
}
C
gcc -O1 -o events events.c -Ipackage/usr/include "$libraries/libucm.so.0" \
  "$libraries/libucs.so.0"
seen=$(env -u LD_PRELOAD ./events)
echo "munmap's first byte, then KiB told of munmap, madvise, mmap, syscall(), the" \
  "instruction: $seen"
[[ $seen == "e9 1024 1024 1024 0 0 " ]] || { echo "not what was seen"; exit 1; }
