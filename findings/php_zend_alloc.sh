#!/bin/bash
# PHP 8.2 (Debian php8.2-cli 8.2.36-1~deb12u1, x86-64): USE_ZEND_ALLOC=0, by which
# PHP's blocks come from malloc, ends memory_limit and memory_get_usage with it.
#
# A good guess: the variable changes where blocks come from, to see each under a
# profiler or to try another malloc, and the engine counts them as before. Seen: the
# counts are part of the allocator that is switched off. memory_get_usage and
# memory_get_peak_usage give 0, and a script that an orderly "Allowed memory size
# exhausted" ends otherwise runs on. Workers that start anew above some usage never
# do, so runs with and without the variable are not of the same load.
#
# Seen, 64 strings of 1 MiB with memory_limit=32M: with 1 the error, with 0 all 64,
# usage 0 and peak 0. With memory_limit=128M and 1: all 64, usage 64 MiB.
#
# Needs apt-get (for the packages' files, 20 MB; nothing is installed), dpkg-deb.
# Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'php8.2-cli=8.2.*' \
  'libargon2-1=0~20171227-*' 'libsodium23=1.0.18-*' 'libxml2=2.9.14*' \
  'libicu72=72.1-*' 'libpcre2-8-0=10.42-*' 'libssl3=3.0.*'
for file in *.deb; do dpkg-deb -x "$file" package; done
cat >hold.php <<'PHP'
<?php
$held = [];
for ($i = 0; $i < 64; $i++) {
    $held[] = str_repeat('x', 1 << 20);
}
echo count($held), ' ', memory_get_usage() >> 20, ' ', memory_get_peak_usage() >> 20;
PHP
Run() {  # $1: USE_ZEND_ALLOC, $2: memory_limit
  USE_ZEND_ALLOC=$1 LD_LIBRARY_PATH=$(dirname "$(find package -name libxml2.so.2)") \
    package/usr/bin/php8.2 -n -d memory_limit="$2" -d display_errors=1 hold.php 2>&1 |
    grep -o '^[0-9 ]*$\|Allowed memory size' || true
}
limited=$(Run 1 32M)
limited_malloc=$(Run 0 32M)
free=$(Run 1 128M)
echo "strings, usage, peak in MiB: limit 32M '$limited'," \
  "with USE_ZEND_ALLOC=0 '$limited_malloc', limit 128M '$free'"
[[ $limited == "Allowed memory size" && $limited_malloc == "64 0 0" &&
  $free == "64 64 64" ]] || { echo "not what was seen"; exit 1; }
