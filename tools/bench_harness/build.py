"""Builds what is measured: with Bazel, here or at another revision.

HAK_BAZEL may hold another command line for bazel; HAK_CACHE another folder for
what is kept between runs.
"""
import contextlib
import fcntl
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess

from errors import BadUsage, BuildFailed

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VARIANTS = ("release", "tracing", "hardened", "debug")
# What decides the library's bytes.
SOURCES = ("allocator", "tools/build", "third_party", "WORKSPACE", ".bazelrc")


def library_name(variant):
    return "libhakmem.so" if variant == "release" else "libhakmem-%s.so" % variant


def cache_folder():
    named = os.environ.get("HAK_CACHE")
    if named:
        return pathlib.Path(named).absolute()
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(home).absolute() / "hakmem"


def git(*arguments):
    """What git says, or None."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return done.stdout.strip() if done.returncode == 0 else None


def revision():
    return git("rev-parse", "HEAD")


def is_dirty(*paths):
    return bool(git("status", "--porcelain", "--", *paths))


class Bazel:
    """A Bazel in one folder."""

    def __init__(self, folder, startup=()):
        self.folder = folder
        self.command = shlex.split(os.environ.get("HAK_BAZEL", "bazel")) + list(startup)

    def run(self, *arguments):
        try:
            done = subprocess.run(self.command + list(arguments), cwd=self.folder, check=False,
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        except FileNotFoundError as error:
            raise BuildFailed("there is no %s; tools/setup.sh installs it" % self.command[0]) from error
        if done.returncode != 0:
            raise BuildFailed("bazel %s failed:\n%s" % (shlex.join(arguments), done.stderr.strip()))
        return done.stdout.strip()

    def build(self, *targets):
        """The folder bazel-bin, with the targets in it."""
        cache = cache_folder() / "bazel"
        cache.mkdir(parents=True, exist_ok=True)
        options = ["--disk_cache=%s" % cache, "--distdir=%s" % (ROOT / "third_party/distdir")]
        self.run("build", "--noshow_progress", *options, *targets)
        return pathlib.Path(self.run("info", *options, "bazel-bin"))


def build_here(variants):
    """bazel-bin, with the programs, the tools and the variants in it."""
    targets = ["//tools/measure/...", "//benchmarks", "//benchmarks/micro"]
    if (ROOT / "benchmarks/traces/BUILD").is_file():
        targets.append("//benchmarks/traces")
    targets += ["//allocator:preload_" + variant for variant in variants]
    return Bazel(ROOT).build(*targets)


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _worktree(folder, commit):
    """A checkout of `commit` at `folder`, which no other process uses meanwhile."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # One may be left of a run that was killed.
        git("worktree", "remove", "--force", str(folder))
        shutil.rmtree(folder, ignore_errors=True)
        git("worktree", "prune")
        if git("worktree", "add", "--detach", "--force", str(folder), commit) is None:
            raise BuildFailed("git cannot check out %s at %s" % (commit, folder))
        try:
            yield
        finally:
            git("worktree", "remove", "--force", str(folder))


def library_at(name):
    """(commit, library) of a git revision; the library is kept for the next time."""
    commit = git("rev-parse", "--verify", "--quiet", name + "^{commit}")
    if commit is None:
        raise BadUsage("%s is neither a file nor a git revision" % name)
    cache = cache_folder() / "bench"
    library = cache / "libraries" / commit / "libhakmem.so"
    if library.is_file():
        return commit, library
    folder = cache / "worktree"
    bazel = Bazel(folder, ["--output_base=%s" % (cache / "output_base")])
    with _worktree(folder, commit):
        try:
            built = bazel.build("//allocator:preload_release") / "allocator/libhakmem.so"
            library.parent.mkdir(parents=True, exist_ok=True)
            partial = library.with_suffix(".part")
            shutil.copyfile(built, partial)
            partial.rename(library)
        except BuildFailed as error:
            raise BuildFailed("revision %s does not build: %s" % (name, error)) from error
        finally:
            with contextlib.suppress(BuildFailed):
                bazel.run("shutdown")
    return commit, library


def older_revision():
    """(revision, why) of what a change is measured against; (None, why) without one."""
    if is_dirty(*SOURCES):
        return "HEAD", "the allocator has changes that are not committed, so it is compared with HEAD"
    changed = git("rev-list", "-1", "HEAD", "--", *SOURCES)
    before = changed and git("rev-parse", "--verify", "--quiet", changed + "~1^{commit}")
    if not before:
        return None, "there is no older revision here to compare with"
    return before, "the allocator is as committed, so it is compared with what it was before its last change, %s" % (
        changed[:12])
