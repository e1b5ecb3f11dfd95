# title: programs under faketime, which stands before clock_gettime and allocates
# serves: date perl
# seconds: 60
# needs: faketime perl
set -euo pipefail
faketime '2020-02-02 02:02:02' date +%Y-%m-%d
faketime -f '@2001-01-01 00:00:00' perl -e 'my %h; $h{$_} = "x" x ($_ % 500) for 1 .. 50000; print +(localtime)[5], " ", scalar(keys %h), "\n"'
# In the other order, if something is preloaded.
before=${LD_PRELOAD-}
LD_PRELOAD=${before:+$before:}$(ls /usr/lib/*/faketime/libfaketime.so.1) FAKETIME='@2010-10-10 10:10:10' date +%Y
