#!/usr/bin/python3
"""Made-up results of a whole benchmark run, for tests and for work on the report.

Usage: tools/bench_harness/example_results.py [--seed N] [--every N] [--report PAGE.html]
Prints a results.json, or writes the page of it. The same seed gives the same results: 10
allocators, over 50 programs, families over threads, each kind of failure, a noisy machine.
No figure in it was measured.
"""
import argparse
import json
import math
import pathlib
import random
import sys

import numpy

# name, hakmem?, time and memory relative to mimalloc, how badly it takes to more threads
PEERS = (
    ("hakmem", True, 0.95, 1.02, 0.00), ("hakmem-hardened", True, 1.18, 1.10, 0.00),
    ("glibc", False, 1.32, 0.94, 0.10), ("jemalloc", False, 1.14, 0.98, 0.02),
    ("mimalloc", False, 1.00, 1.00, 0.00), ("mimalloc3", False, 0.97, 1.01, 0.00),
    ("tcmalloc", False, 1.08, 1.06, 0.06), ("scudo", False, 2.30, 1.04, 0.25),
    ("snmalloc", False, 1.01, 1.12, 0.00), ("rpmalloc", False, 1.07, 1.20, 0.01))
FAMILIES = (("larson", "objects that change owner"), ("mid_large_mt", "8–52 KiB blocks"),
            ("one_to_many", "one producer, many consumers"), ("churn", "threads come and go"))
PATTERNS = (
    "random mixed", "tiny hot", "batch of 10 in order", "batch of 1,000 reversed",
    "batch of 100,000 shuffled", "one to one", "many to one", "producer that stops",
    "realloc doubling", "realloc in small steps", "large spans", "calloc", "aligned",
    "sized delete", "false sharing, active", "false sharing, passive", "fork server",
    "start and exit", "two classes alternating", "size drift between phases")
MEMORY = ("fragmentation over a long run with a shifting size mix", "burst and release")
TRACES = ("clang, one file of the standard library", "CPython, json", "CPython, regular expressions",
          "sqlite, inserts", "sqlite, queries", "redis, set and get", "jq, one large file")
PROGRAMS = ("clang++ compiles", "g++ compiles", "CPython, objects", "CPython, strings", "sqlite3",
            "redis-server", "PostgreSQL under pgbench", "ghostscript", "z3", "ruby", "perl")
PAIR_FIGURES = ("time_per_operation", "ratio", "verdict", "wall_seconds", "peak_rss_bytes",
                "minor_faults", "system_share", "throughput", "settled_rss_bytes", "rss_ratio")
# program, peer: what became of the runs from the second on; None: all peers
FAILURES = {
    ("fork_server", "scudo"): ("crashed", "signal 11 (SIGSEGV)"),
    ("large_spans", "rpmalloc"): ("timed_out", "60 s"),
    ("postgresql_under_pgbench", "snmalloc"): ("not_loaded", "process 4211 mapped glibc's malloc alone"),
    ("aligned", "hakmem-hardened"): ("failed", "exit status 3: alignment 4096 was not kept"),
    ("z3", None): ("skipped", "z3 is not on PATH"),
    ("ghostscript", None): ("skipped", "gs is not on PATH"),
}


def name_of(title):
    return "".join(c if c.isalnum() else "_" for c in title.lower()).strip("_").replace("__", "_")


def program(title, about, group, metric="throughput", threads=None, family=None, name=None):
    name = name or name_of(title)
    return {"name": name, "title": title, "about": about, "group": group, "threads": threads,
            "family": family, "metric": metric, "command": ["{bench}/bench_" + name]}


def programs():
    found = [program(t, "The pattern \u201c%s\u201d." % t, "small" if "of 1" in t else "mixed", threads=1)
             for t in PATTERNS]
    for family, about in FAMILIES:
        found += [program("%s, %d thread%s" % (family, threads, "s"[:threads - 1]), about, "threads",
                          threads=threads, family=family, name="%s_%d" % (family, threads))
                  for threads in (1, 2, 4, 8)]
    found += [program(t, "Peak and settled memory.", "large", "rss", threads=1) for t in MEMORY]
    found += [program(t, "Replay of a recorded trace.", "traces") for t in TRACES]
    found += [program(t, "The whole program.", "programs", "time") for t in PROGRAMS]
    return found


def one_run(chance, what, peer, repeat, speed, memory):
    """`speed`: this allocator's seconds per operation on this program."""
    noise = math.exp(chance.gauss(0, 0.012)) * (1.25 if chance.random() < 0.01 else 1)
    whole = what["metric"] == "time"
    wall = speed * noise * (1 if whole else 2e7)
    system = wall * chance.uniform(0.01, 0.2)
    faults = int(memory / 4096 * chance.uniform(0.9, 1.1))
    result = None if whole else {"operations": 20000000, "seconds": wall, "minor_faults": faults}
    return {"program": what["name"], "peer": peer, "repeat": repeat, "order": 0, "status": "ok",
            "detail": None, "wall_seconds": wall * 1.02, "user_seconds": wall * 1.02 - system,
            "system_seconds": system, "peak_rss_bytes": int(memory * noise),
            "minor_faults": faults, "major_faults": 0, "voluntary_switches": chance.randrange(50),
            "involuntary_switches": chance.randrange(200),
            "throughput": None if whole else 2e7 / wall, "result": result, "system_calls": None}


def failed_run(what, peer, repeat, status, detail):
    run = dict.fromkeys(("wall_seconds", "user_seconds", "system_seconds", "peak_rss_bytes",
                         "minor_faults", "major_faults", "voluntary_switches",
                         "involuntary_switches", "throughput", "result", "system_calls"))
    return {"program": what["name"], "peer": peer, "repeat": repeat, "order": 0,
            "status": status, "detail": detail, **run}


def runs_of(chance, what, peer, speed, memory, repeats):
    name = peer[0]
    bad = FAILURES.get((what["name"], name)) or FAILURES.get((what["name"], None))
    if bad and bad[0] == "skipped":
        return [failed_run(what, name, 0, *bad)]
    runs = []
    for repeat in range(repeats):
        if bad and repeat:
            return runs + [failed_run(what, name, repeat, *bad)]
        runs.append(one_run(chance, what, name, repeat, speed, memory))
    return runs


def seconds_of(run):
    return 1 / run["throughput"] if run["throughput"] else run["wall_seconds"]


def bootstrap(generator, values):
    picks = generator.choice(values, (300, len(values)))
    return numpy.median(picks, axis=1)


def summarise(generator, what, peer, runs, base):
    """(pair, its bootstrap medians); `base`: the baseline's (pair, bootstrap medians) or None."""
    good = [run for run in runs if run["status"] == "ok"]
    status = "ok" if len(good) == len(runs) else runs[-1]["status"]
    pair = {"program": what["name"], "peer": peer, "runs": len(good), "status": status,
            **dict.fromkeys(PAIR_FIGURES)}
    if status != "ok":
        return pair, None
    for key in ("wall_seconds", "peak_rss_bytes", "minor_faults", "throughput"):
        if good[0][key] is not None:
            pair[key] = float(numpy.median([run[key] for run in good]))
    pair["system_share"] = float(numpy.median([
        run["system_seconds"] / (run["user_seconds"] + run["system_seconds"]) for run in good]))
    if what["metric"] == "rss":
        pair["settled_rss_bytes"] = pair["peak_rss_bytes"] * 0.4
    times = [seconds_of(run) for run in good]
    medians = bootstrap(generator, times)
    low, high = (float(v) for v in numpy.percentile(medians, (2.5, 97.5)))
    pair["time_per_operation"] = {"median": float(numpy.median(times)), "low": low, "high": high}
    base_pair, base_medians = base or (pair, medians)
    if base_medians is not None:
        compare(pair, medians, base_pair, base_medians, peer == base_pair["peer"])
    return pair, medians


def compare(pair, medians, base_pair, base_medians, same):
    low, high = (1.0, 1.0) if same else (
        float(v) for v in numpy.percentile(medians / base_medians, (2.5, 97.5)))
    value = pair["time_per_operation"]["median"] / base_pair["time_per_operation"]["median"]
    pair["ratio"] = {"value": value, "low": min(low, value), "high": max(high, value)}
    pair["verdict"] = "same" if same else "faster" if high < 1 else "slower" if low > 1 \
        else "same" if 0.98 < low and high < 1.02 else "can't tell"
    pair["rss_ratio"] = pair["peak_rss_bytes"] / base_pair["peak_rss_bytes"]


def mean(values):
    """The geometric mean, or None of nothing."""
    values = [value for value in values if value]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def group_mean(pairs, timed):
    ratios = [p["ratio"] for p in pairs if p["program"] in timed and p["ratio"]]
    time = {key: mean(r[key] for r in ratios) for key in ("value", "low", "high")}
    return {"programs": len(ratios), "time_ratio": time if ratios else None,
            "rss_ratio": mean(p["rss_ratio"] for p in pairs)}


def peer_mean(name, pairs, all_programs):
    """`pairs` as in the results; all programs' mean is that of the groups' means."""
    timed = {p["name"] for p in all_programs if p["metric"] != "rss"}
    groups = []
    for group in dict.fromkeys(p["group"] for p in all_programs):
        members = {p["name"] for p in all_programs if p["group"] == group}
        mine = [p for p in pairs if p["peer"] == name and p["program"] in members]
        groups.append({"group": group, **group_mean(mine, timed)})
    times = [g["time_ratio"] for g in groups if g["time_ratio"]]
    time = {key: mean(t[key] for t in times) for key in ("value", "low", "high")}
    return {"peer": name, "programs": sum(g["programs"] for g in groups), "time_ratio": time if times else None,
            "rss_ratio": mean(g["rss_ratio"] for g in groups), "groups": groups}


def generate(seed=1, repeats=7, every=1):
    chance, generator = random.Random(seed), numpy.random.default_rng(seed)
    all_programs, families, runs, pairs = programs()[::every], {}, [], []
    for what in all_programs:
        threads = what["threads"] or 1
        speed = chance.uniform(1, 6) if what["metric"] == "time" else \
            math.exp(chance.uniform(math.log(4e-9), math.log(9e-8)))
        if what["family"]:
            speed = families.setdefault(what["family"], speed) / min(threads, 2) ** 0.9
        memory = math.exp(chance.uniform(math.log(3e6), math.log(4e8)))
        spread = 0.05 if what["metric"] == "time" or what["family"] else 0.18
        order = sorted(PEERS, key=lambda peer: peer[0] != "mimalloc")
        base = None
        for peer in order:
            slower = peer[2] ** (0.3 if what["metric"] == "time" else 1)
            mine = speed * slower * (1 + peer[4] * (threads - 1)) * math.exp(chance.gauss(0, spread))
            held = memory * peer[3] * math.exp(chance.gauss(0, 0.12))
            new = runs_of(chance, what, peer, mine, held, repeats)
            summary = summarise(generator, what, peer[0], new, base)
            base = base or summary
            runs += new
            pairs.append(summary[0])
    chance.shuffle(runs)
    for order, run in enumerate(runs):
        run["order"] = order
    return assemble(all_programs, runs, pairs, repeats, seed)


def assemble(all_programs, runs, pairs, repeats, seed):
    failures = {(r["program"], r["peer"], r["status"], r["detail"])
                for r in runs if r["status"] != "ok"}
    keys = ("program", "peer", "status", "detail")
    return {
        "schema": "hakmem-bench-results", "version": 1,
        "started": "2026-11-20T13:30:00Z", "finished": "2026-11-20T14:21:40Z",
        "command": ["tools/bench", "--repeats", str(repeats), "--seed", str(seed)],
        "machine": {"cpu": "Example CPU @ 2.90GHz", "processors": 2, "memory_bytes": 8 << 30,
                    "kernel": "6.1.0-28-amd64", "os": "Debian GNU/Linux 12 (bookworm)",
                    "huge_pages": "madvise", "load_before": 0.12, "load_after": 2.31,
                    "noise_percent": 4.7, "noisy": True,
                    "remarks": ["another process took 31% of a processor between runs 410 and 455"]},
        "source": {"revision": "0123456789abcdef0123456789abcdef01234567", "dirty": True},
        "settings": {"repeats": repeats, "warmups": 1, "pin": None, "baseline": "mimalloc",
                     "set": "full", "mean": "groups", "seed": seed, "confidence": 0.95},
        "peers": [{"name": name, "path": None if name == "glibc" else "lib%s.so" % name,
                   "version": "%d.%d" % (len(name) % 4 + 1, len(name)),
                   "sha256": None if name == "glibc" else "%064x" % (len(name) * seed),
                   "hakmem": ours} for name, ours, _, _, _ in PEERS],
        "programs": all_programs, "runs": runs,
        "summary": {"pairs": pairs,
                    "peers": [peer_mean(peer[0], pairs, all_programs) for peer in PEERS],
                    "failures": [dict(zip(keys, failure)) for failure in sorted(failures)]}}


def by_hand(times, metric="throughput", hakmem=("hakmem",)):
    """Small results: times[program][peer] is (median, low, high) in seconds, or a status.

    The last peer is the baseline; all take 1 MiB."""
    peers = list(dict.fromkeys(peer for row in times.values() for peer in row))
    results = assemble([program(name, "", "synthetic", metric, name=name) for name in times],
                       [], [], 5, 1)
    pairs = []
    for name, row in times.items():
        base = row.get(peers[-1], "skipped")
        for peer, time in row.items():
            pair = {"program": name, "peer": peer, "runs": 5, "status": "ok",
                    **dict.fromkeys(PAIR_FIGURES)}
            if isinstance(time, str):
                pair.update(status=time)
            else:
                pair.update(time_per_operation=dict(zip(("median", "low", "high"), time)),
                            peak_rss_bytes=1 << 20)
                if not isinstance(base, str):
                    pair["ratio"] = dict(zip(("value", "low", "high"), (t / base[0] for t in time)))
                    pair["rss_ratio"] = 1.0
            pairs.append(pair)
    results["settings"]["baseline"] = peers[-1]
    results["machine"].update(noisy=False, remarks=[])
    results["peers"] = [{"name": peer, "path": None, "version": "1", "sha256": None,
                         "hakmem": peer in hakmem} for peer in peers]
    results["summary"] = {
        "pairs": pairs, "peers": [peer_mean(peer, pairs, results["programs"]) for peer in peers],
        "failures": [{"program": p["program"], "peer": p["peer"], "status": p["status"],
                      "detail": "seen"} for p in pairs if p["status"] != "ok"]}
    return results


def history(count=12, seed=1):
    """`count` earlier runs, oldest first, in which hakmem gets faster."""
    chance, entries = random.Random(seed), []
    for index in range(count):
        late = (count - index) / count
        entries.append({
            "started": "2026-11-%02dT02:00:00Z" % (index + 1), "revision": "%040x" % (index + 171),
            "peers": {name: {"time_ratio": time * chance.gauss(1, 0.008) * (1 + 0.2 * late * ours),
                             "rss_ratio": rss * chance.gauss(1, 0.008) * (1 + 0.1 * late * ours)}
                      for name, ours, time, rss, _ in PEERS}})
    return entries


def main():
    parser = argparse.ArgumentParser(description="Made-up results of a benchmark run.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", type=int, default=1, help="of so many programs the first (%(default)s)")
    parser.add_argument("--report", type=pathlib.Path, metavar="PAGE.html")
    arguments = parser.parse_args()
    results = generate(arguments.seed, every=arguments.every)
    if arguments.report:
        import report  # the generator alone needs no matplotlib
        report.write(results, arguments.report, history())
    else:
        json.dump(results, sys.stdout, indent=1)
        print()


if __name__ == "__main__":
    main()
