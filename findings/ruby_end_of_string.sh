#!/bin/bash
# Ruby 3.1.2 (Debian libruby3.1 3.1.7+really3.1.2-0*, x86-64): the last 100 letters of a
# string keep all of it, the first 100 do not.
#
# A good guess: a substring is a copy, or it shares; and it is the same for each part of
# a string. Seen: only a substring that reaches the end of its string shares, for it can
# end with the string's own 0. So s[-100..] of each line or file that is read keeps the
# whole of it, while s[0, 100] is 100 letters. ObjectSpace.memsize_of has 40 bytes for
# the part that keeps 64 MiB, and 141 for the other. What is kept shows up as a string
# that no variable has.
#
# Seen: MiB in memory of four parts of strings of 64 MiB that are gone: first letters
# less than 70, last 256; memsize_of one part 141 and 40.
#
# Needs apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit status
# 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download \
  'ruby3.1=3.1.7+really3.1.2-0*' 'libruby3.1=3.1.7+really3.1.2-0*'
for file in *.deb; do dpkg-deb -x "$file" package; done
root=$PWD/package/usr
export LD_LIBRARY_PATH=$root/lib/x86_64-linux-gnu
export RUBYLIB=$root/lib/ruby/3.1.0:$root/lib/x86_64-linux-gnu/ruby/3.1.0
cat >part.rb <<'RUBY'
require "objspace"

def resident = File.read("/proc/self/statm").split[1].to_i >> 8

def part(first)
  whole = "x" * (64 << 20)
  first ? whole[0, 100] : whole[-100, 100]
end

first = ARGV[0] == "first"
before = resident
kept = Array.new(4) { part(first) }
GC.start
GC.start
size = ObjectSpace.memsize_of(kept[1])
puts [RUBY_VERSION, resident - before, size].join(" ")
RUBY
ruby="$root/bin/ruby3.1 --disable-gems part.rb"
read -r version first first_size < <($ruby first)
read -r _ last last_size < <($ruby last)
echo "Ruby $version, MiB in memory (memsize_of one part): first letters $first" \
  "($first_size), last $last ($last_size)"
((first < 140 && last >= 250 && last_size == 40)) ||
  { echo "not what was seen"; exit 1; }
