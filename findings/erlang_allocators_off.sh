#!/bin/bash
# Erlang/OTP 25.2.3 (Debian erlang-base 1:25.2.3+dfsg-1+deb12u*, x86-64): to give one
# kind of memory to malloc makes all of erlang:memory() fail.
#
# A good guess: with +M<kind>e false, as is done to try another malloc, that kind is
# missing in the sums, or counted by malloc. Seen: one kind without its allocator
# makes each item of memory() an error: notsup. Tools that show memory (observer, the
# metrics of a service) crash or have a gap from then on.
#
# Seen: erlang:memory(processes), of which binaries are no part, is a number with no
# option and with +MBas bf (another strategy for binaries), and notsup with +MBe false
# (binaries by malloc) and with +Mea min (all by malloc).
#
# Needs apt-get (for the package's files; nothing is installed), dpkg-deb. Exit status
# 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'erlang-base=1:25.2.3+dfsg-1+deb12u*'
dpkg-deb -x erlang-base*.deb package
export ROOTDIR=$PWD/package/usr/lib/erlang EMU=beam
BINDIR=$(echo "$ROOTDIR"/erts-*/bin)
export BINDIR
ask='case catch erlang:memory(processes) of
       {_, {Error, _}} -> io:format("~p", [Error]);
       Bytes when is_integer(Bytes) -> io:format("number") end, halt().'
seen=
for option in "" "+MBas bf" "+MBe false" "+Mea min"; do
  # shellcheck disable=SC2086
  answer=$("$BINDIR/erlexec" $option -noshell -boot start_clean -eval "$ask" </dev/null)
  echo "erlang:memory(processes), ${option:-no option}: $answer"
  seen+="$answer "
done
[[ $seen == "number number notsup notsup " ]] || { echo "not what was seen"; exit 1; }
