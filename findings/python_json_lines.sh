#!/bin/bash
# CPython 3.11 (also 3.9 and 3.13): 100,000 JSON records that are read line by line take
# more than twice the memory of the same records in one list.
#
# A good guess: names of members are shared, as Python shares the names of attributes,
# so records are the same however they came. Seen: json keeps the names that it has met
# in a table, and the table lives for one call of loads. Within a document each name is
# one str. Each line of a JSON Lines file, or message from a queue, has all its names
# anew, of 50 to 60 bytes each. Pickle does the same. sys.intern of the names in an
# object_pairs_hook makes both sizes equal.
#
# Seen: bytes by tracemalloc for each of 100,000 records with five members, one document
# 219, lines 512, lines with interned names 220; by pickle in one 224, each alone 516.
#
# Needs python3 (3.9 to 3.13). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >lines.py <<'PYTHON'
import json
import pickle
import sys
import tracemalloc

COUNT = 100000
LINES = [
    '{"identifier": %d, "description": null, "temperature": 1, "pressure": 2, '
    '"humidity": 3}' % number for number in range(COUNT)
]
DOCUMENT = "[%s]" % ",".join(LINES)
PICKLES = [pickle.dumps(json.loads(line)) for line in LINES]
ALL = pickle.dumps(json.loads(DOCUMENT))


def interned(pairs):
    return {sys.intern(name): value for name, value in pairs}


def each(read):
    tracemalloc.start()
    records = read()
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return used // len(records)


print(each(lambda: json.loads(DOCUMENT)),
      each(lambda: [json.loads(line) for line in LINES]),
      each(lambda: [json.loads(line, object_pairs_hook=interned)
                    for line in LINES]),
      each(lambda: pickle.loads(ALL)),
      each(lambda: [pickle.loads(text) for text in PICKLES]))
PYTHON
read -r document lines interned whole alone < <(python3 lines.py)
echo "bytes for each record: document $document, lines $lines, lines with interned" \
  "names $interned; pickle of all $whole, of each $alone"
((lines > document * 17 / 10 && interned < document * 11 / 10)) &&
  ((alone > whole * 17 / 10)) || { echo "not what was seen"; exit 1; }
