#!/usr/bin/env python3
"""Makes a wheel with the library, in all variants, and the hakmem command.

usage: tools/package_wheel.py OUTPUT_DIRECTORY

Two builds of one commit are the same, byte for byte. SOURCE_DATE_EPOCH is the
commit's time, if nothing else is said. HAK_CACHE and HAK_BAZEL: see
build_command.sh.
"""
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import linked_libraries

ROOT = pathlib.Path(__file__).resolve().parent.parent
VARIANTS = ["release", "tracing", "hardened", "debug"]
# What every system of a manylinux tag has (PEP 600), beside libc and the loader.
ALLOWED = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libz.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
# The newest libstdc++ that belongs to the glibc of the tag.
NEWEST_GLIBCXX = {(2, 34): (3, 4, 29), (2, 35): (3, 4, 30), (2, 36): (3, 4, 30)}


def fail(sentence):
    print("hakmem: " + sentence, file=sys.stderr)
    sys.exit(1)


def run(*command, **kwargs):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, **kwargs)
    if done.returncode != 0:
        fail("%s:\n%s%s" % (" ".join(map(str, command)), done.stdout, done.stderr))
    return done.stdout.strip()


def version():
    text = (ROOT / "allocator/hakmem.h").read_text(encoding="utf-8")
    return ".".join(re.findall(r"^#define HAKMEM_VERSION_[MP]\w* (\d+)$", text, re.MULTILINE))


def needed_versions(objdump, name):
    """The versions of symbols `NAME_x.y` that `objdump -p` lists as needed."""
    return {tuple(map(int, number.split("."))) for number in re.findall(r"\b%s_([\d.]+)\b" % name, objdump)}


def tag(objdumps, machine):
    """The oldest platform on which programs with these needs run."""
    for objdump in objdumps:
        foreign = set(re.findall(r"NEEDED +(\S+)", objdump)) - ALLOWED
        if foreign:
            raise ValueError("needs %s, which not every system has" % ", ".join(sorted(foreign)))
    glibc = max({(2, 34)}.union(*(needed_versions(text, "GLIBC") for text in objdumps)))[:2]
    newest = max({(0,)}.union(*(needed_versions(text, "GLIBCXX") for text in objdumps)))
    while newest > NEWEST_GLIBCXX.get(glibc, newest):
        glibc = (glibc[0], glibc[1] + 1)
    return "manylinux_%d_%d_%s" % (*glibc, machine)


def collect(folder):
    """Fills `folder` with the package's files."""
    package = folder / "hakmem"
    shutil.copytree(ROOT / "dist/python/hakmem", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "bin").mkdir()
    (package / "lib").mkdir()
    command = run("tools/build_command.sh")
    run("strip", "--strip-unneeded", "--remove-section=.comment", "-o", package / "bin/hakmem", command)
    (package / "bin/hakmem").chmod(0o755)
    with tempfile.TemporaryDirectory() as scratch:
        run("tools/amalgamate.py", scratch + "/source")
        run("make", "-C", scratch + "/source", "-j%d" % os.cpu_count(), "VARIANTS=" + " ".join(VARIANTS), "CXXFLAGS=-O2",
            "LIBDIR=/lib", "PREFIX=/", "DESTDIR=" + scratch + "/all", "install")
        for variant in VARIANTS:
            name = "libhakmem.so" if variant == "release" else "libhakmem-%s.so" % variant
            run("strip", "--strip-unneeded", "--remove-section=.comment", "-o", package / "lib" / name, scratch + "/all/lib/" + name)
            (package / "lib" / name).chmod(0o644)
    return [package / "bin/hakmem", *sorted((package / "lib").iterdir())]


def describe(info, platform_tag):
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: hakmem\nVersion: %s\nSummary: A malloc for Linux that knows every pointer\n"
        "License: Apache-2.0 AND LGPL-3.0-or-later AND LGPL-2.1-or-later AND bzip2-1.0.6\nRequires-Python: >=3.7\nDescription-Content-Type: text/markdown\n\n"
        "`hakmem run -- python app.py` runs a program on hakmem; `python -m hakmem` is the same command.\n" % version())
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: hakmem\nRoot-Is-Purelib: false\nTag: py3-none-%s\n" % platform_tag)
    (info / "entry_points.txt").write_text("[console_scripts]\nhakmem = hakmem.__main__:main\n")
    shutil.copy(ROOT / "LICENSE", info / "LICENSE")
    for name in linked_libraries.LICENSES:
        shutil.copy(pathlib.Path("/usr/share/common-licenses") / name, info / name)
    (info / "NOTICE").write_text(linked_libraries.notice(), encoding="utf-8")


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def pack(folder, record, wheel, seconds):
    """Zips the folder, with a RECORD of all its files: the same each time."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = ["%s,%s,%d\n" % (path.relative_to(folder), digest(path.read_bytes()), path.stat().st_size) for path in files]
    record.write_text("".join(lines) + "%s,,\n" % record.relative_to(folder))
    # A zip knows no time before 1980.
    moment = time.gmtime(max(seconds, 315532800))[:6]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files + [record]:
            entry = zipfile.ZipInfo(str(path.relative_to(folder)), moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path.parent.name == "bin" else 0o100644) << 16
            archive.writestr(entry, path.read_bytes())


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    output = pathlib.Path(sys.argv[1]).absolute()
    output.mkdir(parents=True, exist_ok=True)
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        binaries = collect(folder)
        try:
            platform_tag = tag([run("objdump", "-p", path) for path in binaries], platform.machine())
        except ValueError as error:
            fail(str(error))
        info = folder / ("hakmem-%s.dist-info" % version())
        describe(info, platform_tag)
        pack(folder, info / "RECORD", output / ("hakmem-%s-py3-none-%s.whl" % (version(), platform_tag)), seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
