#!/bin/bash
# Redis 7.0.15 (Debian redis-server 5:7.0.15-1~deb12u*, x86-64): a memory limit with
# eviction by use makes the same data take a quarter more memory.
#
# A good guess: a limit decides what is thrown away, and data below the limit have the
# size that they had. Seen: the values 0 to 9,999 are shared objects, so a counter with
# the value 7 costs nothing beside its key. With maxmemory and a policy of LRU or LFU
# each value is an object of its own, 16 bytes, as it needs its own age. A database near
# its limit evicts keys that had room without the limit. MEMORY USAGE has 48 bytes for
# a key in all cases. With allkeys-random all values are shared.
#
# Seen: 100,000 keys with the value 7: bytes of used_memory and of MEMORY USAGE: without
# a limit 6829504 48, allkeys-random 6830880 48, allkeys-lru 8429312 48.
#
# Needs apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit status
# 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server"; rm -rf "$folder"' EXIT
cd "$folder"
unset MALLOC_CONF
apt-get -qq -o APT::Sandbox::User=root download 'redis-tools=5:7.0.15-1~deb12u*' \
  'redis-server=5:7.0.15-1~deb12u*' libjemalloc2=5.3.0-1 libatomic1 liblzf1
for file in *.deb; do dpkg-deb -x "$file" package; done
export LD_LIBRARY_PATH=$PWD/package/usr/lib/x86_64-linux-gnu
Client() { package/usr/bin/redis-cli -s "$folder/socket" "$@"; }
Fill() {  # $@: the server's options. Sets used and usage
  package/usr/bin/redis-server --port 0 --unixsocket "$folder/socket" --save '' "$@" \
    >log 2>&1 &
  server=$!
  until Client ping >answer 2>&1; do kill -0 "$server"; done
  for ((i = 0; i < 100000; ++i)); do echo "SET key$i 7"; done | Client --pipe >answer
  used=$(Client info memory | sed -n 's/^used_memory:\([0-9]*\).*/\1/p')
  usage=$(Client memory usage key7)
  kill "$server"
  wait "$server" || true
  server=
  echo "used_memory and MEMORY USAGE of a key, $*: $used $usage"
}
Fill --maxmemory 0
plain=$used plain_usage=$usage
Fill --maxmemory 100mb --maxmemory-policy allkeys-random
random=$used
Fill --maxmemory 100mb --maxmemory-policy allkeys-lru
((used - plain > 1500000 && usage == plain_usage && random - plain < 100000)) ||
  { echo "not what was seen"; exit 1; }
