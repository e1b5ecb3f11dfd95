#!/bin/bash
# duckdb 2.0.1, polars 2.1.0 and pyarrow 19.0.0 (PyPI, x86-64): a process with the three
# has three jemallocs, and MALLOC_CONF reaches none of them.
#
# A good guess: MALLOC_CONF is how jemalloc is told its options, of which jemalloc says
# so in its own output ("Environment variable MALLOC_CONF"), so one setting, of how long
# freed memory is kept, say, holds for the process. Seen: the prefix that keeps their
# symbols apart is part of the variable's name, too, and the output's words are not.
# Each has its own: DUCKDB_JE_MALLOC_CONF, _RJEM_MALLOC_CONF, JE_ARROW_MALLOC_CONF.
# None is reached by LD_PRELOAD of another malloc either.
#
# Seen: reports at exit by stats_print:true, with MALLOC_CONF 0; with one of the others
# 1 each; with all of them 3.
#
# Needs python3 (3.9 to 3.13) with venv. Exit status 1: it is not so any more.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip -q --disable-pip-version-check install duckdb==2.0.1 polars==2.1.0 \
  pyarrow==19.0.0
cat >three.py <<'PYTHON'
import duckdb
import polars
import pyarrow

duckdb.sql("select sum(i) from range(1000000) t(i)").fetchall()
polars.DataFrame({"a": range(1000)}).sum()
pyarrow.allocate_buffer(1 << 20, memory_pool=pyarrow.jemalloc_memory_pool())
PYTHON
reports() {  # NAME...
  env "${@/%/=stats_print:true}" venv/bin/python three.py 2>&1 |
    grep -c 'Begin jemalloc statistics' || true
}
own=(DUCKDB_JE_MALLOC_CONF _RJEM_MALLOC_CONF JE_ARROW_MALLOC_CONF)
seen=
for name in MALLOC_CONF "${own[@]}"; do seen+="$(reports "$name") "; done
seen+=$(reports "${own[@]}")
echo "reports with MALLOC_CONF, ${own[*]}, and these three: $seen"
[[ $seen == "0 1 1 1 3" ]] || { echo "not what was seen"; exit 1; }
