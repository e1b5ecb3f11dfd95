#!/bin/bash
# Perl 5.36.0 (Debian perl-base 5.36.0-7+deb12u*, x86-64): the text of a local variable
# stays allocated after its function has returned.
#
# A good guess: Perl counts references, so what "my $text" holds goes at the end of the
# block. Seen: the text is gone for the program, but its block stays with the function
# for the next call, as large as the largest was. Three functions that each had 64 MiB
# once have 192 MiB for ever. "undef $text" before the end gives the block back.
#
# Seen: MiB in memory after three calls of functions with 64 MiB each 192 and more; with
# undef 0.
#
# Needs apt-get (for the package's files; nothing is installed), dpkg-deb. Exit status
# 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
apt-get -qq -o APT::Sandbox::User=root download 'perl-base=5.36.0-7+deb12u*'
dpkg-deb -x ./*.deb package
cat >kept.pl <<'PERL'
my $undef = @ARGV;
sub resident {
    open my $statm, '<', '/proc/self/statm' or die;
    return (split ' ', <$statm>)[1] >> 8;
}
sub one {
    my $text = '';
    $text .= 'abcdefgh' x 1024 for 1 .. 8192;
    undef $text if $undef;
}
sub two {
    my $text = '';
    $text .= 'abcdefgh' x 1024 for 1 .. 8192;
    undef $text if $undef;
}
sub three {
    my $text = '';
    $text .= 'abcdefgh' x 1024 for 1 .. 8192;
    undef $text if $undef;
}
my $before = resident();
one();
two();
three();
print resident() - $before, "\n";
PERL
kept=$(package/usr/bin/perl kept.pl)
undefined=$(package/usr/bin/perl kept.pl undef)
echo "MiB in memory after three functions with 64 MiB each: $kept;" \
  "with undef: $undefined"
((kept >= 190 && undefined < 70)) || { echo "not what was seen"; exit 1; }
