"""hakmem, a malloc that knows every pointer, for programs that run on Python.

`hakmem run -- python app.py` or `python -m hakmem run -- python app.py` runs a
program on it; `hakmem help` has the rest.
"""
import os

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def command():
    """The path of the hakmem command."""
    return os.path.join(_FOLDER, "bin", "hakmem")


def library(variant="release"):
    """The path of a variant's library, for LD_PRELOAD."""
    name = "libhakmem.so" if variant == "release" else "libhakmem-%s.so" % variant
    path = os.path.join(_FOLDER, "lib", name)
    if not os.path.exists(path):
        raise ValueError("there is no variant %r: release, tracing, hardened or debug" % variant)
    return path
