#!/usr/bin/env python3
"""What a change concerns, for `tools/test.sh --changed`.

Usage: tools/changed.py files|scripts|tests BASE
The change is what differs from the revision BASE in the working tree, new
files included. Prints, one to a line,
  files    the changed files that exist
  scripts  the tools' tests outside of Bazel that lie in a changed folder; the
           site's, when a document has changed
  tests    the Bazel tests that depend on a changed file; //... where all do
HAK_BAZEL may hold another command line for bazel.
"""
import os
import pathlib
import shlex
import subprocess
import sys

BAZEL = shlex.split(os.environ.get("HAK_BAZEL", "bazel"))
# What the build of everything depends on without naming it.
EVERYTHING = ("WORKSPACE", ".bazelrc", ".bazelignore", "third_party/")
# A workspace of its own.
ELSEWHERE = "examples/consumer/"
# Where the documents become pages.
SITE = "tools/site"


def git(*args):
    done = subprocess.run(["git", *args], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit("tools/changed.py: git %s: %s" % (args[0], done.stderr.strip()))
    return done.stdout


def changed_files(base):
    """Every path that differs from `base`, also the deleted ones."""
    differing = git("diff", "--name-only", "-z", "--no-renames", base, "--")
    new = git("ls-files", "-z", "--others", "--exclude-standard")
    return sorted(set((differing + new).split("\0")) - {""})


def test_scripts(changed):
    """Tests that no BUILD file has are run when anything beside them has changed."""
    folders = {SITE if path.endswith(".md") else os.path.dirname(path) for path in changed}
    known = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "tools/*_test.py").split("\0")
    return [path for path in known if path and os.path.exists(path) and os.path.dirname(path) in folders
            and not os.path.exists(os.path.join(os.path.dirname(path), "BUILD"))]


def package_of(path):
    """The folder of the BUILD file that `path` belongs to, "." for the root."""
    return next(str(folder) for folder in pathlib.PurePath(path).parents
                if os.path.exists(os.path.join(folder, "BUILD")) or str(folder) == ".")


def labels(changed):
    """(labels that a rule may name, packages that are to be taken whole), or None for everything."""
    sources, packages = set(), set()
    for path in changed:
        if path.startswith(EVERYTHING) or path.endswith(".bzl"):
            return None
        if path.startswith(ELSEWHERE):
            continue
        folder = package_of(path)
        package = "//" + ("" if folder == "." else folder)
        # A file that is gone changes what a glob of its package finds.
        if os.path.basename(path) == "BUILD" or not os.path.exists(path):
            packages.add(package + ":all")
        else:
            sources.add("%s:%s" % (package, os.path.relpath(path, folder)))
    return sources, packages


def query(expression, *options):
    """The labels that Bazel finds. With --keep_going it leaves out what it cannot read."""
    done = subprocess.run([*BAZEL, "query", "--noshow_progress", *options, expression], capture_output=True, text=True)
    if done.returncode not in ((0, 3) if "--keep_going" in options else (0,)):
        raise SystemExit("bazel query ended with %d:\n%s" % (done.returncode, done.stderr))
    return sorted(done.stdout.split())


def dependent_tests(changed):
    found = labels(changed)
    if found is None:
        return ["//..."]
    sources, packages = found
    if packages:
        query("set(%s)" % " ".join(sorted(packages)))  # a broken BUILD file ends it here
    if not sources | packages:
        return []
    # Files that no rule names are no targets. What is manual runs only when somebody names it.
    return query('let t = tests(rdeps(//..., set(%s))) in $t except attr(tags, "\\bmanual\\b", $t)'
                 % " ".join("'%s'" % label for label in sorted(sources | packages)), "--keep_going")


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in ("files", "scripts", "tests"):
        raise SystemExit(__doc__)
    changed = changed_files(sys.argv[2])
    kinds = {"files": lambda: [path for path in changed if os.path.exists(path)],
             "scripts": lambda: test_scripts(changed),
             "tests": lambda: dependent_tests(changed)}
    for line in kinds[sys.argv[1]]():
        print(line)


if __name__ == "__main__":
    main()
