#!/usr/bin/env python3
"""programs_test.py LIBRARY COUNTED: programs do the same while allocations are guarded.

Runs CPython, where it is installed sqlite3, and COUNTED (counted.cc) without hakmem and with the
library preloaded, with one allocation in 50 guarded and with every one until
the slots are used up. Output and exit status must agree.
"""

import os
import shutil
import subprocess
import sys

PYTHON = """
import json, re, zlib, threading, subprocess, sys
words = [str(i) * (i % 40) for i in range(20000)]
table = {word: i for i, word in enumerate(words)}
print(len(json.dumps(table)), zlib.crc32(" ".join(words).encode()))
print(len(re.findall("1+2", " ".join(words))))
total = []
threads = [threading.Thread(target=lambda n=n: total.append(sum(len(bytes(i)) for i in range(n))))
           for n in range(500, 1000, 100)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(total), subprocess.run(["echo", "child"], capture_output=True).stdout)
"""

SQL = """
create table t(a integer primary key, b text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
insert into t select i, hex(i * 7919) || printf('%060d', i) from n;
create index by_b on t(b);
select count(*), sum(length(b)), max(b) from t;
select substr(b, 1, 2) as k, count(*) from t group by k order by 2 desc, 1 limit 5;
delete from t where a % 3 = 0; vacuum; select count(*) from t;
"""


def run(command, text, environment):
    result = subprocess.run(command, input=text, env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return result.returncode, result.stdout


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    library = os.path.realpath(sys.argv[1])
    environment = {"PATH": os.environ["PATH"], "PYTHONMALLOC": "malloc"}
    programs = [([sys.executable, "-S", "-"], PYTHON), ([os.path.realpath(sys.argv[2])], "")]
    if shutil.which("sqlite3"):
        programs.append((["sqlite3", ":memory:"], SQL))
    bad = 0
    for command, text in programs:
        expected = run(command, text, environment)
        if expected[0] != 0:
            sys.exit(f"{command[0]} fails without hakmem: {expected[1]}")
        for sample in ("50", "1"):
            found = run(command, text, dict(environment, LD_PRELOAD=library,
                                            HAKMEM_GUARD_SAMPLE=sample))
            if found != expected:
                print(f"{command[0]} with one in {sample} guarded: {found}\n"
                      f"  expected: {expected}")
                bad += 1
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
