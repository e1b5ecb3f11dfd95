#!/bin/bash
# perf 6.1 (Debian linux-perf 6.1.*, x86-64): the page faults of a heap that is filled
# by read are not there for users without privileges.
#
# A good guess: perf stat counts a program's page faults, which are those of
# getrusage, whoever asks. Seen: without privileges (perf_event_paranoid 2, the
# kernel's default) each event becomes its ":u" form, faults taken in user mode.
# Pages of a buffer that the kernel touches first, in read, recv or the like, are
# faulted in kernel mode. A program that loads 256 MiB into fresh blocks has none of
# these faults, with no word but the ":u" behind the name, and a comparison of two
# allocators leaves them out.
#
# Seen: 256 MiB of malloc filled by read: ru_minflt 65,690, page-faults 65,660,
# page-faults:u 110 (rounded).
#
# Needs gcc, apt-get (for the packages' files, 100 MB; nothing is installed),
# dpkg-deb, root (to count in kernel mode, too). Exit status 1: it is not so any
# more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
needed=$(apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts \
  --no-breaks --no-replaces --no-enhances linux-perf | grep '^lib' |
  grep -vE '^(libc6|libc-bin|libcrypt1)$')
apt-get -qq -o APT::Sandbox::User=root download 'linux-perf=6.1.*' $needed
for file in *.deb; do dpkg-deb -x "$file" package; done
perf=$(find "$PWD/package" -name 'perf*' -path '*/bin/*' -type f | head -n 1)
libraries=$(find "$PWD/package" -name '*.so*' -printf '%h\n' | sort -u | paste -sd:)
cat >load.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void) {
  size_t size = (size_t)256 << 20, part = 1 << 16;
  char* block = malloc(size);
  int zeros = open("/dev/zero", O_RDONLY);
  for (size_t done = 0; done < size; done += part) {
    if (read(zeros, block + done, part) < 0) return 1;
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%ld\n", usage.ru_minflt);
  return 0;
}
C
gcc -O0 -o load load.c
LD_LIBRARY_PATH=$libraries "$perf" stat -x, -o counted \
  -e page-faults,page-faults:u env -u LD_LIBRARY_PATH ./load >told
told=$(cat told)
all=$(sed -n 's/^\([0-9]*\),,page-faults,.*/\1/p' counted)
user=$(sed -n 's/^\([0-9]*\),,page-faults:u,.*/\1/p' counted)
echo "faults: getrusage $told, page-faults $all, page-faults:u $user"
((told > 60000 && all > 60000 && user < 2000)) || { echo "not what was seen"; exit 1; }
