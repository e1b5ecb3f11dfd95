#!/bin/bash
# wasmtime 50.0.1 (PyPI, x86-64): a memory of one page, declared never to grow, takes
# 4 GiB of addresses, so that the 32,263rd fails on a machine with its memory free.
#
# A good guess: (memory 1 1) has 64 KiB for ever, so an instance takes 64 KiB and some
# guard pages, and how many there can be is a question of memory, or of the limit on
# mappings. Seen: each takes 4,160 MiB of addresses, whatever its maximum says, for a
# 32-bit address plus its guard must lie in what is reserved. The 128 TiB of a process
# are used up first: "Cannot allocate memory", with some hundred MiB resident. Under
# ulimit -v of 8 GB the second instance fails.
#
# Seen: MiB of addresses for an instance 4160; instances until the error 32262; under
# the limit 1.
#
# Needs python3 with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install wasmtime==50.0.1
cat >instances.py <<'PYTHON'
import sys

import wasmtime


def figures():
    with open("/proc/self/statm") as file:
        return [int(word) * 4 >> 10 for word in file.read().split()[:2]]


engine = wasmtime.Engine()
module = wasmtime.Module(engine, "(module (memory 1 1))")
instances, addresses = [], []
try:
    while len(instances) < 50000:
        store = wasmtime.Store(engine)
        instances.append((store, wasmtime.Instance(store, module, [])))
        if len(instances) <= 3:
            addresses.append(figures()[0])
except wasmtime.WasmtimeError as error:
    assert "Cannot allocate memory" in str(error), error
each = addresses[2] - addresses[1] if len(addresses) == 3 else 0
print(len(instances), each, figures()[1])
PYTHON
read -r most each resident < <(venv/bin/python instances.py)
read -r limited _ < <(ulimit -v 8000000 && venv/bin/python instances.py)
echo "instances: $most, of $each MiB of addresses each, $resident MiB resident;" \
  "under ulimit -v of 8 GB: $limited"
((most > 30000 && most < 33000 && each >= 4096 && each < 4300 &&
  resident < 4096 && limited == 1)) || { echo "not what was seen"; exit 1; }
