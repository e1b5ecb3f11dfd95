#!/usr/bin/env python3
"""Every attack on hakmem's variants, on the system's malloc and on other allocators, as a table.

Usage: bazel run //allocator/tests/attacks:compare -- --library NAME=PATH ...
Prints Markdown, with the versions as far as libraries and packages tell them. cases.py says what
the words mean.
"""
import argparse
import concurrent.futures
import os
import subprocess

import cases

# On other allocators an attack may have no end.
PATIENCE_SECONDS = 60


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", action="append", default=[], metavar="NAME=PATH", type=named_library,
                        help="an allocator to preload (none: the system's); may be repeated")
    parser.add_argument("--runs", type=int, default=100, help="of each case on each allocator (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at once (%(default)s)")
    parser.add_argument("--only", action="append", default=[], metavar="PROGRAM", help="these programs alone")
    parser.add_argument("--program", action="append", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def named_library(text):
    name, has_path, path = text.partition("=")
    if name and has_path and not path:
        return name, None
    if not os.path.exists(path):
        # `bazel run` starts in a folder of its own, where only hakmem's are.
        path = os.path.join(os.environ.get("BUILD_WORKING_DIRECTORY", ""), path)
    if not has_path or not os.path.isfile(path):
        raise argparse.ArgumentTypeError("%r is not NAME=PATH of a library" % text)
    return name, os.path.abspath(path)


def cell(case, library, runs):
    return cases.sum_up([cases.run_once(case, library, PATIENCE_SECONDS) for _ in range(runs)])


def package_of(path):
    """Debian's package of the file and its version, or the file's name."""
    for name in (path, os.path.realpath(path)):
        owner = subprocess.run(["dpkg-query", "-S", name], check=False, text=True, capture_output=True)
        if owner.returncode == 0:
            package = owner.stdout.split(": ")[0]
            return subprocess.run(["dpkg-query", "-W", "-f=${Package} ${Version}", package], check=True, text=True,
                                  capture_output=True).stdout
    return os.path.basename(path)


def main():
    options = arguments()
    programs = [program for program in options.program
                if not options.only or os.path.basename(program) in options.only]
    every = [case for program in programs for case in cases.read(program)]
    allocators = options.library
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = [[pool.submit(cell, case, library, options.runs) for _, library in allocators]
                   for case in every]
        print("| attack | program | %s |" % " | ".join(name for name, _ in allocators))
        print("|---|---|%s" % ("---|" * len(allocators)))
        about = None
        for case, row in zip(every, waiting):
            if case.about != about:
                about = case.about
                print("| **%s** |%s" % (about, " |" * (len(allocators) + 1)))
            print("| %s | `%s` | %s |" % (case.what, case.label, " | ".join(each.result() for each in row)),
                  flush=True)
    print()
    for name, library in allocators:
        library = library or "/lib/%s-linux-gnu/libc.so.6" % os.uname().machine
        print("- %s: %s" % (name, package_of(library)))


if __name__ == "__main__":
    main()
