#!/bin/bash
# Perl 5.36.0 (Debian perl-base 5.36.0-7+deb12u*, x86-64): a number that was once looked
# at as text takes 56 bytes more, for good.
#
# A good guess: a number in a regular expression, a join or a hash's key is turned into
# text for the moment, and is the number that it was afterwards. Seen: the text is kept
# with the number, in a block of its own, in case somebody asks again. An array of
# numbers becomes larger by one search over it, or by a line of output that join made.
# print of the number itself, sprintf, and the text of a copy leave it alone.
#
# Seen: bytes by which each of 500,000 numbers grew: print 0, sprintf 0, text of a copy
# 0; join 56, regular expression 56, look-up in a hash 56.
#
# Needs apt-get (for the package's files; nothing is installed), dpkg-deb. Exit status
# 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'perl-base=5.36.0-7+deb12u*'
dpkg-deb -x ./*.deb package
cat >numbers.pl <<'PERL'
use strict;

sub kib {
    open my $status, '<', '/proc/self/status' or die;
    while (<$status>) { return $1 if /^RssAnon:\s+(\d+)/ }
}

open my $null, '>', '/dev/null' or die;
my ($sum, %none) = (0);
my %uses = (
    print => sub { print $null $_[0] },
    sprintf => sub { $sum += length sprintf '%d', $_[0] },
    copy => sub { my $copy = $_[0]; $sum += length "$copy" },
    join => sub { $sum += length join ',', $_[0], '' },
    expression => sub { ++$sum if $_[0] =~ /^1/ },
    key => sub { ++$sum if exists $none{$_[0]} },
);
my $use = $uses{$ARGV[0]};
my @numbers = (1 .. 500000);
my $before = kib();
$use->($_) for @numbers;
print int((kib() - $before) * 1024 / @numbers), "\n";
PERL
seen=
for use in print sprintf copy join expression key; do
  bytes=$(package/usr/bin/perl numbers.pl $use)
  echo "bytes by which each number grew, $use: $bytes"
  seen+="$((bytes > 40)) "
done
[[ $seen == "0 0 0 1 1 1 " ]] || { echo "not what was seen"; exit 1; }
