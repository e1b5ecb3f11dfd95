#!/bin/bash
# PHP 8.2 (Debian php8.2-cli 8.2.*, x86-64): USE_ZEND_ALLOC=0, with which another
# malloc is tried, takes the memory limit away, and all figures.
#
# A good guess: the variable exchanges PHP's allocator for malloc, and PHP counts as
# before. Seen: the counts are the allocator's own. memory_limit stays set, is printed
# by ini_get and refuses nothing; memory_get_usage() and the peak are 0. A script that
# would have ended with "Allowed memory size exhausted" takes what the machine has.
#
# Seen: 64 MiB of strings with memory_limit=16M: USE_ZEND_ALLOC=1 the fatal error;
# USE_ZEND_ALLOC=0 "16M 0 0".
#
# Needs apt-get (for the packages' files; nothing is installed), dpkg-deb, the
# libraries of Debian's php8.2-cli beside these (libxml2, libssl3, libpcre2-8-0,
# libedit2). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'php8.2-cli=8.2.*' libargon2-1 \
  libsodium23 libxml2 libpcre2-8-0 libedit2
for file in *.deb; do dpkg-deb -x "$file" package; done
export LD_LIBRARY_PATH=$PWD/package/usr/lib/x86_64-linux-gnu
# shellcheck disable=SC2016
script='$kept = []; for ($i = 0; $i < 64; $i++) $kept[] = str_repeat("x", 1 << 20);
  echo ini_get("memory_limit"), " ", memory_get_usage(), " ", memory_get_peak_usage();'
Run() {
  USE_ZEND_ALLOC=$1 package/usr/bin/php8.2 -n -d memory_limit=16M -r "$script" \
    2>/dev/null || true
}
own=$(Run 1)
malloc=$(Run 0)
error=$(echo "$own" | grep -o 'Allowed memory size of 16777216 bytes exhausted')
echo "64 MiB at a limit of 16: PHP's allocator: $error; malloc: $malloc"
[[ -n $error && $malloc == "16M 0 0" ]] ||
  { echo "not what was seen"; exit 1; }
