#!/bin/bash
# PHP 8.2 (Debian php8.2-cli, x86-64): a loop by reference that changes nothing makes an
# array of numbers three times as large, for good.
#
# A good guess: "foreach ($a as &$value)" saves the copy, and after unset($value) the
# array is as before. Seen: each element becomes a block of its own that a reference
# can point to, and nothing turns it back into a number when the reference is gone. The
# next loops, sort() and new values for the elements go on with the blocks. array_walk
# with a reference does the same. A copy element by element, as array_map or a loop
# makes, is small again, and the plain copy of the array is not.
#
# Seen: MiB by memory_get_usage with a million numbers 16, after a loop by value 16, by
# reference 46, after sort() 46, after array_map 16, after array_walk 46.
#
# Needs apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit status
# 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'php8.2-cli=8.2.*' libargon2-1 \
  libsodium23 libxml2 libpcre2-8-0 libedit2
for file in *.deb; do dpkg-deb -x "$file" package; done
cat >loop.php <<'PHP'
<?php
function show() {
  echo memory_get_usage() >> 20, " ";
}
$a = range(1, 1000000);
show();
foreach ($a as $value);
show();
foreach ($a as &$value);
unset($value);
show();
sort($a);
show();
$a = array_map(fn($value) => $value, $a);
show();
array_walk($a, function (&$value) {});
show();
echo "\n";
PHP
read -r new value reference sorted mapped walked < <(
  LD_LIBRARY_PATH=$PWD/package/usr/lib/x86_64-linux-gnu USE_ZEND_ALLOC=1 \
    package/usr/bin/php8.2 -n -d memory_limit=-1 loop.php
)
echo "MiB: new $new, loop by value $value, by reference $reference, sorted $sorted," \
  "mapped $mapped, walked $walked"
((value == new && reference > 2 * new && sorted == reference && mapped == new &&
  walked == reference)) || { echo "not what was seen"; exit 1; }
