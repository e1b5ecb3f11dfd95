#!/usr/bin/env python3
"""Runs clang-tidy on the sources of the allocator's layers, in parallel.

Usage: tools/tidy.py --cache=FOLDER --commands=COMPILE_COMMANDS [--changed=REVISION | --together]

What was found clean is not looked at again: FOLDER holds a stamp named after
the hash of the source, all headers it includes, its flags, .clang-tidy and the
tool. With --changed, only sources that differ from REVISION, or include a
header that does, are looked at. With --together, all sources of a package that
can be are looked at as one, so that their headers are looked at once, and
without clang's analyzer, which follows the paths of one source: a third of the
time.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

from changed import changed_files

TIDY = "clang-tidy-19"
# For Bazel alone; clang-tidy would warn of what only a compiler's driver knows.
DROPPED = ("-fmodule", "-Xclang", "-MD", "-MF", "-frandom-seed", "-o", "-c")
NOT_LAYERS = ("allocator/tests/", "allocator/testing/", "allocator/layering_test/")


def is_layer_source(name):
    return (name.startswith("allocator/") and name.endswith(".cc") and not name.endswith("_test.cc")
            and not name.startswith(NOT_LAYERS))


def flags(arguments):
    """The compiler's options without those that name outputs or modules."""
    kept, skip = [], False
    for argument in arguments[1:]:
        if skip:
            skip = False
        elif argument in ("-MF", "-o", "-c"):
            skip = True
        elif not argument.startswith(DROPPED):
            kept.append(argument)
    return kept


def included(source, options):
    """The files that the compiler reads for `source`, or None if it fails."""
    done = subprocess.run(["clang++-19", *options, "-MM", source], capture_output=True, text=True)
    if done.returncode != 0:
        return None
    return done.stdout.replace("\\\n", " ").split(":", 1)[1].split()


def anywhere(name):
    """A name without the folder of Bazel's that another clone, or the next output root, has elsewhere."""
    return re.sub(r"/\S*/external/", "external/", name)


def digest(source, options, files, tool):
    sha = hashlib.sha256(json.dumps([source, [anywhere(option) for option in options], tool]).encode())
    for name in sorted(set(files + [".clang-tidy"]), key=anywhere):
        sha.update(anywhere(name).encode() + b"\0" + hashlib.sha256(pathlib.Path(name).read_bytes()).digest())
    return sha.hexdigest()


def tidy(source, options, checks, tool, cache, changed):
    """The findings in one source and its headers; "" if there are none."""
    files = included(source, options)
    if files is None:
        files = [source]
    elif changed is not None and not changed.intersection(files):
        return ""
    stamp = cache / digest(source, options + checks, files, tool)
    if stamp.exists():
        stamp.touch()
        return ""
    done = subprocess.run([TIDY, "--quiet", "--config-file=.clang-tidy", *checks, source, "--", *options], capture_output=True, text=True)
    if done.returncode != 0:
        return done.stdout or done.stderr
    stamp.touch()
    return ""


def as_one(sources, options, folder):
    """Files in the folder that include some of the sources each; those whose names clash are apart."""
    one = folder / (hashlib.sha256("\n".join(sources).encode()).hexdigest() + ".cc")
    one.write_text("// NOLINTBEGIN(bugprone-suspicious-include)\n%s// NOLINTEND(bugprone-suspicious-include)\n"
                   % "".join('#include "%s"\n' % source for source in sources))
    compiles = subprocess.run(["clang++-19", *options, "-fsyntax-only", str(one)], capture_output=True).returncode == 0
    if compiles or len(sources) == 1:
        return [str(one)]
    half = len(sources) // 2
    return as_one(sources[:half], options, folder) + as_one(sources[half:], options, folder)


def packages(sources):
    """Lists of sources of one package that are compiled by the same flags."""
    found = collections.defaultdict(list)
    for source, options in sorted(sources.items()):
        found[(pathlib.Path(source).parent, tuple(options))].append(source)
    return found.values()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("--commands", type=pathlib.Path, required=True)
    parser.add_argument("--changed")
    parser.add_argument("--together", action="store_true")
    args = parser.parse_args()
    args.cache.mkdir(parents=True, exist_ok=True)
    differing = set(changed_files(args.changed)) if args.changed else None
    tool = subprocess.run([TIDY, "--version"], check=True, capture_output=True, text=True).stdout
    sources = {entry["file"]: flags(entry["arguments"]) for entry in json.loads(args.commands.read_text())
               if is_layer_source(entry["file"])}
    if not sources:
        raise SystemExit("%s names no source of a layer" % args.commands)
    checks = ["--checks=-clang-analyzer-*"] if args.together else []
    # Its path is a part of what is remembered, so it is the same each time.
    folder = args.cache / "together"
    folder.mkdir(exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:

        def look(some):
            options = sources[some[0]]
            files = as_one(some, options, folder) if args.together else some
            return "".join(tidy(source, options, checks, tool, args.cache, differing) for source in files)

        some = packages(sources) if args.together else [[source] for source in sorted(sources)]
        reports = list(pool.map(look, some))
    for report in filter(None, reports):
        print(report.rstrip())
    return 1 if any(reports) else 0


if __name__ == "__main__":
    sys.exit(main())
