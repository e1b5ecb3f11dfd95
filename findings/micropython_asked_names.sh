#!/bin/bash
# MicroPython 1.27.0 (npm @micropython/micropython-webassembly-pyscript 1.27.0): to ask
# an object for an attribute that it does not have takes memory for ever.
#
# A good guess: hasattr and getattr with a default look a name up and leave nothing
# behind. Seen: all names of attributes are numbers in MicroPython. A text that was
# never a name gets a number before the search, and is kept with it. The table of these
# has no removal, so no collection frees any. A device that asks by names out of
# messages fills its memory, of some hundred KiB, with nothing in any object. A
# dictionary's get with the same texts keeps nothing.
#
# Seen: names in the table and their bytes by micropython.qstr_info() at the start 6 and
# 211, after 10,000 of dict.get 6 and 211, of getattr with a default 10006 and 160749,
# of the same again and a collection 10006 and 160749.
#
# Needs node, npm (for the package's files). Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm pack --silent @micropython/micropython-webassembly-pyscript@1.27.0 >archive
tar -xzf "$(cat archive)"
cat >names.mjs <<'JS'
import { loadMicroPython } from "./package/micropython.mjs";

const python = await loadMicroPython({ heapsize: 16 << 20 });
python.runPython(`
import gc
import micropython

class Empty:
    pass

texts = {}

def look():
    for number in range(10000):
        texts.get("name%d" % number)

def ask():
    for number in range(10000):
        getattr(Empty, "name%d" % number, None)

micropython.qstr_info()
look()
micropython.qstr_info()
ask()
micropython.qstr_info()
ask()
`);
python.runPython("gc.collect()");
python.runPython("micropython.qstr_info()");
JS
seen=$(node names.mjs |
  sed -nE 's/.*n_qstr=([0-9]+),.*n_total_bytes=([0-9]+).*/\1 \2/p' | tr '\n' ' ')
echo "names and their bytes at the start, after dict.get, getattr, getattr again: $seen"
read -r first _ looked _ asked bytes again bytes_again <<<"$seen"
((looked == first && asked == first + 10000 && bytes > 150000)) &&
  ((again == asked && bytes_again == bytes)) || { echo "not what was seen"; exit 1; }
