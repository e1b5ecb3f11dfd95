#!/bin/bash
# Lua 5.4.4 (Debian lua5.4 5.4.4-3*, x86-64): no collection makes an emptied table
# smaller, and an insertion does.
#
# A good guess: memory falls when things are removed and the collector has run, and an
# insertion can only take more. Seen: the collector never resizes a table. A table whose
# elements are all nil keeps the room of all until a new key finds no room: then the
# table is counted anew, and shrinks to what is in it. A cache that is emptied, and then
# only asked, so stays as large as it was.
#
# Seen: KiB by collectgarbage("count"), after collections: with a million integers some
# 16,405; all of them nil the same; after one more key 21 or 23.
#
# Needs apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit status
# 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'lua5.4=5.4.4-3*' 'liblua5.4-0=5.4.4-3*'
for file in *.deb; do dpkg-deb -x "$file" package; done
cat >table.lua <<'LUA'
local function kib()
  collectgarbage()
  collectgarbage()
  return math.floor(collectgarbage("count"))
end
local all = {}
for i = 1, 1000000 do all[i] = i end
local full = kib()
for i = 1, 1000000 do all[i] = nil end
local empty = kib()
all.more = true
print(full, empty, kib())
LUA
read -r full empty more < <(
  LD_LIBRARY_PATH=package/usr/lib/x86_64-linux-gnu package/usr/bin/lua5.4 table.lua)
echo "KiB by Lua's count: full $full, all elements nil $empty, one key inserted $more"
((full > 10000 && empty > 10000 && more < 1000)) ||
  { echo "not what was seen"; exit 1; }
