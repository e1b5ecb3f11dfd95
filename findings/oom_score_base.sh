#!/bin/bash
# Linux 6.18 (x86-64): a process with no memory has an oom_score of 666, and the file's
# largest value is not 1000.
#
# A good guess, and the manual's: oom_score goes from 0 for no memory to 1000 for all of
# it, with oom_score_adj added. Seen: since Linux 5.9 it is two thirds of the sum of
# 1000, the share of memory in thousandths and the adjustment. So each process begins at
# 666, all of memory without adjustment is 1333, and a point of adjustment is less than
# one of the file. An alarm at 500, or a share of memory taken from the file, is wrong.
#
# Seen: oom_score of a small process: 666, with an adjustment of 100 733, of 500 1000,
# of 1000 1333.
#
# Needs Linux 5.9 or later. Exit status 1: it is not so any more.
set -euo pipefail
Score() {  # $1: the adjustment
  bash -c 'echo "$1" >/proc/self/oom_score_adj && cat /proc/self/oom_score' - "$1"
}
[[ $(</proc/self/oom_score_adj) == 0 ]] || { echo "has an adjustment"; exit 1; }
seen="$(Score 0) $(Score 100) $(Score 500) $(Score 1000)"
echo "oom_score with adjustments of 0, 100, 500, 1000: $seen"
read -r none some half all <<<"$seen"
((none >= 666 && none < 670 && some >= 733 && some < 737)) &&
  ((half >= 1000 && half < 1004 && all >= 1333 && all < 1337)) ||
  { echo "not what was seen"; exit 1; }
