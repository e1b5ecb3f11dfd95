"""A program of CPython's standard library: its output follows from nothing but this text."""
import bz2
import concurrent.futures
import decimal
import gc
import hashlib
import json
import lzma
import multiprocessing
import random
import re
import sqlite3
import subprocess
import sys
import zlib


def told(name, value):
    print(name, hashlib.sha256(repr(value).encode()).hexdigest()[:16], flush=True)


def work(seed):
    numbers = random.Random(seed)
    words = ["w%x" % numbers.randrange(1 << 20) for _ in range(20000)]
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items())[:100], sum(map(len, words))


def main():
    told("json", json.loads(json.dumps([{"k%d" % i: [i, str(i) * (i % 50), None]} for i in range(20000)])))
    told("re", re.findall(r"(\w+)-(\d{2,})", " ".join("word%d-%d" % (i % 7, i) for i in range(50000))))
    text = b"".join(b"%d:%d;" % (i, i * i) for i in range(100000))
    told("packed", [module.decompress(module.compress(text)) == text for module in (zlib, bz2, lzma)])
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        told("threads", list(pool.map(work, range(12))))
    with multiprocessing.get_context("fork").Pool(3) as pool:
        told("processes", pool.map(work, range(6)))
    base = sqlite3.connect(":memory:")
    base.execute("create table t (a integer, b text)")
    base.executemany("insert into t values (?, ?)", ((i, "x" * (i % 200)) for i in range(30000)))
    told("sqlite", base.execute("select a % 10, sum(length(b)) from t group by 1 order by 1").fetchall())
    decimal.getcontext().prec = 2000
    told("decimal", decimal.Decimal(2).sqrt())
    rings = []
    for i in range(50000):
        ring = [i]
        ring.append(ring)
        rings.append(ring)
    del rings
    told("collected", gc.collect() > 0)
    big = bytearray()
    for i in range(200):
        big.extend(bytes([i]) * 100000)
    told("bytes", zlib.crc32(big))
    told("child", subprocess.run([sys.executable, "-c", "print(sum(range(10 ** 6)))"], check=True, stdout=subprocess.PIPE).stdout)


if __name__ == "__main__":
    main()
