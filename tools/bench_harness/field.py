"""The field's own suite: the programs of a checkout of mimalloc-bench that somebody has built.

Nothing of that suite stands in this repository. Which programs there are and
what they are started with is in benchmarks/suite_field, in our words.
"""
import os
import pathlib
import subprocess

import build
import suite
from errors import BadUsage

FOLDER = build.ROOT / "benchmarks/suite_field"
# Where its build-bench-env.sh puts the small programs and the packages that it builds.
_BUILT = "out/bench"
_PACKAGES = "extern"
_MARKS = ("bench.sh", "build-bench-env.sh", "bench")
# Its largest number of threads for a program that takes no more.
_MOST_THREADS = 16
# Placeholders beside those of every suite.
PLACEHOLDERS = ("checkout", "built", "packages", "redis", "rocksdb", "twice_cpus", "few_cpus")


def placeholders(checkout, cpus):
    """The values of PLACEHOLDERS."""
    checkout = pathlib.Path(os.path.abspath(checkout))
    packages = checkout / _PACKAGES
    return {"checkout": checkout, "built": checkout / _BUILT, "packages": packages,
            "redis": _latest(packages, "redis-*/src"), "rocksdb": _latest(packages, "rocksdb-*"),
            "twice_cpus": 2 * cpus, "few_cpus": min(cpus, _MOST_THREADS)}


def _latest(packages, pattern):
    """The folder of a package whose name ends with its version; the pattern itself if there is none."""
    return max(packages.glob(pattern), key=lambda path: path.stat().st_mtime, default=packages / pattern)


def load(checkout):
    """The programs, whether they are built or not; refuses what is no checkout and one in which nothing is."""
    for name in _MARKS:
        if not (checkout / name).exists():
            raise BadUsage("%s is no checkout of mimalloc-bench: there is no %s in it" % (checkout, name))
    programs = suite.load(FOLDER, suite.PLACEHOLDERS + PLACEHOLDERS)
    values = {name: "" for name in suite.PLACEHOLDERS} | placeholders(checkout, 1)
    built = os.fspath(values["built"])
    if not any(os.access(word, os.X_OK) for program in programs for word in suite.fill(program.command, values)
               if word.startswith(built + "/")):
        raise BadUsage("no program is built in %s; ./build-bench-env.sh bench in %s builds them" % (built, checkout))
    return programs


def revision(checkout):
    """The commit that is checked out, or None."""
    done = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.strip() if done.returncode == 0 else None
