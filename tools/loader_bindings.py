"""Which object each object of a process took its malloc from.

Read from what the loader writes under LD_DEBUG=bindings: one file per process,
one line per symbol it has resolved, at start or later.
"""
import functools
import pathlib
import re
import shutil
import subprocess

# All that allocates or frees, by its name in the objects.
C_NAMES = re.compile(
    r"malloc|calloc|realloc|reallocarray|free|cfree|free_sized|free_aligned_sized"
    r"|aligned_alloc|posix_memalign|memalign|valloc|pvalloc|malloc_usable_size"
    r"|[mrxsn]allocx|s?dallocx")
CPP_NAMES = re.compile(r"_Zn[aw]m.*|_Zd[al]Pv.*")
LINE = re.compile(
    rb"\s*\d+:\tbinding file (.+?) \[\d+\] to (.+?) \[\d+\]: normal symbol `([^']+)'")


@functools.lru_cache(maxsize=None)
def defines(file, symbol):
    """Whether the object has the symbol itself.

    A program that is not position-independent and takes a function's address
    stands in for it with its own jump to the real one, which the loader
    resolves, and reports, besides.
    """
    path = file if "/" in file else shutil.which(file)
    result = subprocess.run(["nm", "-D", "--defined-only", path or file], check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if result.returncode != 0:
        return True  # Not to be found: better one exception too many.
    names = (line.split()[-1].split("@")[0] for line in result.stdout.splitlines())
    return symbol in names


class Bindings:
    """The bindings of all processes that were run with `environment`."""

    def __init__(self, folder, library):
        self.folder = pathlib.Path(folder)
        self.library = pathlib.Path(library).name
        self.users = set()     # of hakmem
        self.processes = 0
        self._others = set()   # (object, symbol, object it comes from)

    @property
    def environment(self):
        return {"LD_DEBUG": "bindings",
                "LD_DEBUG_OUTPUT": str(self.folder / "bindings")}

    @property
    def exceptions(self):
        """Those who took malloc or free elsewhere, sorted."""
        return sorted(other for other in self._others
                      if C_NAMES.fullmatch(other[1]) and defines(other[2], other[1]))

    @property
    def own_operators(self):
        """Objects that bring operators new or delete of their own, sorted."""
        return sorted({provider for _, symbol, provider in self._others
                       if CPP_NAMES.fullmatch(symbol) and defines(provider, symbol)})

    def absorb(self, all_files=False):
        """Reads and removes the files of processes that have ended: a program
        that starts thousands of others would else fill the disk."""
        for path in self.folder.glob("bindings.*"):
            pid = path.name.rsplit(".", 1)[1]
            if all_files or not pathlib.Path("/proc", pid).exists():
                self._read(path)
                path.unlink()

    def _read(self, path):
        self.processes += 1
        with open(path, "rb") as file:
            for line in file:
                # Nearly all lines are about other symbols.
                if not any(part in line for part in (b"alloc", b"free", b"memalign", b"_Z")):
                    continue
                match = LINE.match(line)
                if not match:
                    continue
                user, provider, symbol = (
                    part.decode(errors="backslashreplace") for part in match.groups())
                if not (C_NAMES.fullmatch(symbol) or CPP_NAMES.fullmatch(symbol)):
                    continue
                if pathlib.Path(provider).name == self.library:
                    self.users.add(user)
                elif pathlib.Path(user).name != self.library:
                    self._others.add((user, symbol, provider))
