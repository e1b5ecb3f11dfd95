#!/usr/bin/env python3
"""What the corpora reach of the allocator: lines, functions and branches of each layer.

Usage: fuzz/coverage.py [--variant=NAME]… [--corpus=FOLDER] [--only=TARGET]… [--missing]

Builds the targets with clang's source-based coverage, replays the inputs that
are checked in (and those of a night: FOLDER/TARGET) and prints a Markdown table.
Tests and fakes are not counted. --missing lists the functions that nothing
reached.
"""
import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import tempfile

import fuzzers

OPTIONS = ("--platform_suffix=fuzz_coverage", "--copt=-fprofile-instr-generate", "--copt=-fcoverage-mapping",
           "--linkopt=-fprofile-instr-generate")
LAYERS = ("base", "config", "platform", "process", "stacks", "options", "statistics", "reports", "failures",
          "call_trace", "profile", "superslab", "history", "slab", "ace", "lookup", "guards", "heap", "core", "frontend")
KINDS = ("lines", "functions", "branches")
NOT_COUNTED = re.compile(r"/(fake|test)_[^/]*$|_test\.cc$")


def tool(name):
    return os.environ.get("LLVM_BIN", "/usr/lib/llvm-19/bin") + "/" + name


def replay(program, folders, profile):
    inputs = [str(path) for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
    # In parts, because a command line has an end.
    for first in range(0, len(inputs), 500):
        subprocess.run([program, "-timeout=120", *inputs[first:first + 500]], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env=dict(os.environ, LLVM_PROFILE_FILE="%s.%d" % (profile, first)))
    return len(inputs)


def layer_of(path):
    match = re.search(r"(?:^|/)allocator/(\w+)/[^/]+$", path)
    if not match or match.group(1) not in LAYERS or NOT_COUNTED.search(path):
        return None
    return match.group(1)


def tables(files):
    """{layer: {kind: [reached, all]}} of what llvm-cov exports of each file."""
    sums = {layer: {kind: [0, 0] for kind in KINDS} for layer in LAYERS}
    for file in files:
        layer = layer_of(file["filename"])
        if layer is None:
            continue
        for kind in KINDS:
            sums[layer][kind][0] += file["summary"][kind]["covered"]
            sums[layer][kind][1] += file["summary"][kind]["count"]
    return sums


def share(reached, count):
    return "–" if count == 0 else "%.1f %% (%d of %d)" % (100 * reached / count, reached, count)


def as_markdown(sums):
    total = {kind: [sum(sums[layer][kind][i] for layer in LAYERS) for i in (0, 1)] for kind in KINDS}
    lines = ["| layer | lines | functions | branches |", "|---|---|---|---|"]
    for name, row in [(layer, sums[layer]) for layer in LAYERS] + [("all", total)]:
        if row["lines"][1]:
            lines.append("| %s | %s |" % (name, " | ".join(share(*row[kind]) for kind in KINDS)))
    return "\n".join(lines)


def plain_names(functions):
    """What llvm-cxxfilt makes of their names, which a file's own function has behind the file's."""
    names = "\n".join(function["name"].split(":")[-1] for function in functions)
    return subprocess.run([tool("llvm-cxxfilt")], input=names, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()


def missing(functions):
    """FILE: FUNCTION for each function of a layer of which no instance was reached."""
    counts = collections.defaultdict(int)
    functions = [function for function in functions if layer_of(function["filenames"][0])]
    for function, name in zip(functions, plain_names(functions)):
        line = function["regions"][0][0]
        counts[function["filenames"][0], line, re.sub(r"<&?\(?hakmem::k\w+\)?>", "<…>", name)] += function["count"]
    return ["%s:%d: %s" % key for key, count in sorted(counts.items()) if count == 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", action="append", choices=fuzzers.VARIANTS)
    parser.add_argument("--corpus", type=lambda name: pathlib.Path(name).expanduser(), help="what a night has grown: its corpus folder")
    parser.add_argument("--only", action="append", help="a target; may be given more than once")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--bazel-option", action="append", default=[], help="for the build")
    args = parser.parse_args()
    names = args.only or fuzzers.all_names(args.variant or fuzzers.VARIANTS)
    folder = fuzzers.build(names, (*OPTIONS, *args.bazel_option))
    programs = [str(fuzzers.find(folder, name)) for name in names]
    with tempfile.TemporaryDirectory() as scratch:
        inputs = 0
        for name, program in zip(names, programs):
            folders = [fuzzers.seeds(name)] + ([args.corpus / name] if args.corpus else [])
            inputs += replay(program, folders, os.path.join(scratch, name))
        profile = os.path.join(scratch, "all.profdata")
        subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "-o", profile,
                        *map(str, pathlib.Path(scratch).iterdir())], check=True)
        export = subprocess.run([tool("llvm-cov"), "export", "-instr-profile=" + profile, programs[0],
                                 *["-object=" + program for program in programs[1:]]],
                                check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    data = json.loads(export.stdout)["data"][0]
    print("%d targets, %d inputs\n" % (len(names), inputs))
    print(as_markdown(tables(data["files"])))
    if args.missing:
        print("\n" + "\n".join(missing(data["functions"])))


if __name__ == "__main__":
    main()
