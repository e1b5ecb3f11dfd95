"""The allocators that are compared.

A peer is a name and a library to preload; glibc is the peer without one.
"""
import dataclasses
import glob
import os
import pathlib
import re
import subprocess
import sys

import build
from errors import BadUsage

LIBRARIES = "/usr/lib/%s-linux-gnu" % os.uname().machine
# Name, where its library may be (the last match counts), Debian's package.
KNOWN = (
    ("jemalloc", LIBRARIES + "/libjemalloc.so.2", "libjemalloc2"),
    ("mimalloc", LIBRARIES + "/libmimalloc.so.2*", "libmimalloc2.0"),
    ("tcmalloc", LIBRARIES + "/libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    ("scudo", "/usr/lib/llvm-19/lib/clang/*/lib/linux/libclang_rt.scudo_standalone-%s.so" % os.uname().machine,
     "libclang-rt-19-dev"),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
# Runs with the library preloaded and prints what it says of itself.
_ASK_VERSION = """
import ctypes, sys
here = ctypes.CDLL(None)
def has(name):
    try:
        return getattr(here, name)
    except AttributeError:
        return None
if has("hakmem_version"):
    here.hakmem_version.restype = ctypes.c_char_p
    print(here.hakmem_version().decode())
elif has("mi_version"):
    number = here.mi_version()
    # Two digits each where three are not enough: 212, but 30403.
    base = 10 if number < 1000 else 100
    print("%d.%d.%d" % (number // base**2, number // base % base, number % base))
elif has("mallctl"):
    text, size = ctypes.c_char_p(), ctypes.c_size_t(ctypes.sizeof(ctypes.c_char_p))
    if here.mallctl(b"version", ctypes.byref(text), ctypes.byref(size), None, 0) == 0:
        print(text.value.decode().split("-")[0])
elif has("tc_version"):
    here.tc_version.restype = ctypes.c_char_p
    print(here.tc_version(None, None, None).decode())
"""


@dataclasses.dataclass
class Peer:
    """An allocator that takes part."""
    name: str
    path: str | None = None
    hakmem: bool = False
    version: str = ""
    sha256: str | None = None
    loaded: str | None = None  # what is preloaded: `path` or a copy of it
    settings: dict = dataclasses.field(default_factory=dict)  # what its environment has beyond the common

    def described(self):
        return {"name": self.name, "path": self.path, "version": self.version,
                "sha256": self.sha256, "hakmem": self.hakmem}


def variant_peer(variant):
    return "hakmem" if variant == "release" else "hakmem-" + variant


VARIANT_OF = {variant_peer(variant): variant for variant in build.VARIANTS}


def discover():
    """({name: Peer}, sentences about what is missing)."""
    found, missing = {"glibc": Peer("glibc")}, []
    for name, pattern, package in KNOWN:
        paths = sorted(glob.glob(pattern))
        if paths:
            found[name] = Peer(name, paths[-1])
        else:
            missing.append("no %s here (Debian: %s; tools/setup.sh --bench installs it)" % (name, package))
    return found, missing


@dataclasses.dataclass
class Chosen:
    """Who takes part, before anything is built."""
    peers: dict  # not hakmem's
    variants: list
    missing: list


def choose(texts, variants, quick):
    """Reads --peer and --variant.

    --peer NAME=PATH adds a library; --peer NAME alone selects among those found
    here. hakmem always takes part. With `quick` nobody does who is not named.
    """
    found, missing = discover()
    added, named = {}, []
    variants = list(dict.fromkeys(variants))
    for text in texts:
        name, has_path, path = text.partition("=")
        if has_path:
            added[name] = _library_peer(name, path, {**found, **added})
        elif name in VARIANT_OF:
            named.append(name)
            variants.append(VARIANT_OF[name])
        elif name in found:
            named.append(name)
        else:
            raise BadUsage("no allocator %s is here; there are %s; another is --peer %s=PATH" % (
                name, ", ".join([*found, *VARIANT_OF]), name))
    peers = {name: peer for name, peer in found.items()
             if name in named or not (named or quick)}
    peers.update(added)
    return Chosen(peers, list(dict.fromkeys(variants)) or ["release"], [] if named or quick else missing)


def _library_peer(name, path, taken):
    if not _NAME.fullmatch(name):
        raise BadUsage("%r cannot be the name of an allocator: letters, digits, _ . + and - can" % name)
    if name in taken or name in VARIANT_OF or name == "baseline":
        raise BadUsage("there is an allocator %s already; give yours another name" % name)
    return Peer(name, existing_library(path))


def existing_library(path):
    if not os.path.isfile(path):
        raise BadUsage("there is no library %s" % (path or "(empty path)"))
    return os.path.abspath(path)


def with_settings(taking_part, texts):
    """Those, and behind each its copies by --variant-of."""
    by_name = {peer.name: [peer] for peer in taking_part}
    for text in dict.fromkeys(texts):
        name, _, words = text.partition(":")
        if name not in by_name:
            raise BadUsage("--variant-of %s: %s takes no part; there are %s" % (text, name, ", ".join(by_name)))
        settings = dict(word.split("=", 1) for word in words.split(","))
        by_name[name].append(dataclasses.replace(by_name[name][0], name=text, settings=settings))
    return [peer for peers in by_name.values() for peer in peers]


def choose_baseline(wanted, names):
    if wanted:
        if wanted not in names:
            raise BadUsage("the baseline %s takes no part; there are %s" % (wanted, ", ".join(names)))
        return wanted
    for name in ("baseline", "mimalloc", "glibc"):
        if name in names:
            return name
    return next(iter(names))


def _debian_version(path):
    owner = subprocess.run(["dpkg-query", "-S", os.path.realpath(path)], check=False, text=True,
                           capture_output=True)
    package = owner.stdout.split(": ")[0].split(",")[0]
    if owner.returncode != 0 or not package:
        return None
    done = subprocess.run(["dpkg-query", "-W", "-f=${Package} ${Version}", package], check=False,
                          text=True, capture_output=True)
    return done.stdout or None


def _own_version(path):
    try:
        done = subprocess.run([sys.executable, "-I", "-c", _ASK_VERSION], check=False, text=True,
                              capture_output=True, timeout=20,
                              env={"PATH": os.environ.get("PATH", ""), "LD_PRELOAD": path})
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def libc_path():
    """The file of this process's libc."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[-1].strip()
            if re.search(r"/libc(\.so\.6|-[\d.]+\.so)$", path):
                return path
    return None


def _versions(own, path):
    try:
        packaged = _debian_version(path)
    except FileNotFoundError:
        packaged = None  # not Debian
    if own and packaged:
        return "%s (%s)" % (own, packaged)
    return own or packaged


def identify(peer, version=None):
    """Fills in the version and the hash of the file."""
    if peer.path is None:
        peer.version = _versions("%s %s" % tuple(os.confstr("CS_GNU_LIBC_VERSION").split()), libc_path())
        return peer
    peer.loaded = peer.loaded or peer.path
    peer.sha256 = build.sha256(peer.path)
    peer.version = version or _versions(_own_version(peer.loaded), peer.path) or pathlib.Path(peer.path).name
    return peer
