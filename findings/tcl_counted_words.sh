#!/bin/bash
# Tcl 8.6.13 (Debian libtcl8.6 8.6.13+dfsg-2, x86-64): to count the words of a text of
# 10 MB takes 168 MiB, and most of it is never given back.
#
# A good guess: llength reads a text and answers a number, and the text is as before.
# Seen: a value that is used as a list becomes one. Each word is an object of its own,
# with its letters in a block beside, and the list stays with the text as long as the
# text does. "foreach", "lindex" and "in" do the same to a text that was only to be
# read. After unset the objects are in Tcl's own lists of free ones for the next values
# of Tcl, and malloc gets nothing of them.
#
# Seen: MiB in memory with a text of two million words of 4 letters 10, after llength
# 178, after unset 153, after the same again 178.
#
# Needs apt-get (for the packages' files; nothing is installed), dpkg-deb. Exit status
# 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download tcl8.6=8.6.13+dfsg-2 \
  libtcl8.6=8.6.13+dfsg-2
for file in *.deb; do dpkg-deb -x "$file" package; done
cat >words.tcl <<'TCL'
proc mib {} {
  set status [open /proc/self/status]
  regexp {RssAnon:\s+(\d+)} [read $status] -> kib
  close $status
  puts [expr {$kib / 1024}]
}
set text [string repeat "word " 2000000]
mib
llength $text
mib
unset text
mib
set text [string repeat "word " 2000000]
llength $text
mib
TCL
export TCL_LIBRARY=$PWD/package/usr/share/tcltk/tcl8.6
seen=$(LD_LIBRARY_PATH=package/usr/lib/x86_64-linux-gnu package/usr/bin/tclsh8.6 \
  words.tcl | tr '\n' ' ')
read -r text counted freed again <<<"$seen"
echo "MiB in memory with a text $text, after llength $counted, after unset $freed," \
  "after the same again $again"
((text < 20 && counted > text + 120 && freed > counted - 50)) &&
  ((again < counted + 20)) || { echo "not what was seen"; exit 1; }
