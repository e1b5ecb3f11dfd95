#!/usr/bin/env python3
"""Chooses the inputs of fuzz/corpus: the few that together reach the most.

Usage: fuzz/choose_seeds.py TARGET FOLDER… [--most=16] [--programs=FOLDER]

Of the inputs in the FOLDERs (as a night leaves them) and of those that are
checked in, at most --most become the target's corpus: each time the one that
adds the most to what the others reach, the shorter of two that add the same.
"""
import argparse
import hashlib
import pathlib
import re
import subprocess
import tempfile

import fuzzers


def features(program, folders):
    """(input, what it reaches) for each input, as libFuzzer's merge counts it."""
    with tempfile.TemporaryDirectory() as scratch:
        control = pathlib.Path(scratch) / "control"
        (pathlib.Path(scratch) / "merged").mkdir()
        subprocess.run([program, "-set_cover_merge=1", "-merge_control_file=%s" % control, scratch + "/merged",
                        *folders], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = control.read_text(encoding="utf-8", errors="replace").splitlines()
    # The two counts, then the inputs; then what each has reached.
    count = int(lines[0])
    reached = {}
    for line in lines[2 + count:]:
        match = re.match(r"FT (\d+) (.*)", line)
        if match:
            reached.setdefault(int(match.group(1)), set()).update(map(int, match.group(2).split()))
    return [(pathlib.Path(lines[2 + i]), reached.get(i, set())) for i in range(count)]


def choose(inputs, most):
    """The names of those that reach the most together; `inputs` is (name, bytes, what it reaches)."""
    chosen = []
    missing = set().union(*(reached for _, _, reached in inputs)) if inputs else set()
    left = sorted(inputs, key=lambda each: (each[1], str(each[0])))
    while left and missing and len(chosen) < most:
        best = max(left, key=lambda each: len(each[2] & missing))
        if not best[2] & missing:
            break
        left.remove(best)
        missing -= best[2]
        chosen.append(best[0])
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("folders", nargs="+", metavar="FOLDER")
    parser.add_argument("--most", type=int, default=16)
    parser.add_argument("--programs", type=pathlib.Path)
    args = parser.parse_args()
    seeds = fuzzers.seeds(args.target)
    seeds.mkdir(parents=True, exist_ok=True)
    program = fuzzers.find(args.programs or fuzzers.build([args.target]), args.target)
    inputs = [(path, path.stat().st_size, reached)
              for path, reached in features(program, [*args.folders, str(seeds)])]
    contents = {path: path.read_bytes() for path in choose(inputs, args.most)}
    for path in seeds.iterdir():
        path.unlink()
    for content in contents.values():
        (seeds / hashlib.sha256(content).hexdigest()[:12]).write_bytes(content)
    print("%s: %d of %d inputs, %d bytes" % (seeds, len(contents), len(inputs), sum(map(len, contents.values()))))


if __name__ == "__main__":
    main()
