"""Proof that a program took malloc and free from the file it should.

tools/measure/witness.cc is preloaded after the allocator, and each process
that starts with it appends where its malloc and free come from.
"""
import dataclasses
import os
import re

VARIABLE = "BENCH_WITNESS"
_LIBC = re.compile(r"libc(\.so\.6|-[\d.]+\.so)$")


@dataclasses.dataclass(frozen=True)
class Binding:
    """What one process said."""
    pid: int
    program: str
    malloc: str
    free: str

    def is_from(self, library):
        """Whether both are from `library`; None means the C library."""
        return all(_same(file, library) for file in (self.malloc, self.free))

    def told(self):
        program = os.path.basename(self.program)
        if self.malloc == self.free:
            return "%s took malloc from %s" % (program, self.malloc)
        return "%s took malloc from %s and free from %s" % (program, self.malloc, self.free)


def _same(file, library):
    if library is None:
        return bool(_LIBC.search(os.path.basename(file)))
    try:
        return os.path.samefile(file, library)
    except OSError:
        return False


def read(path):
    """What the processes of a run said; a line that is not whole counts as none."""
    try:
        text = path.read_text(errors="replace")
    except FileNotFoundError:
        return []
    bindings = []
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 4 and fields[0].isdigit():
            bindings.append(Binding(int(fields[0]), *fields[1:]))
    return bindings


def judge(bindings, library, pid):
    """(why the library does not count as loaded or None, remark or None).

    `pid` is the command's own process, which must have the library; None if any
    process will do.
    """
    where = "its malloc" if library is None else library
    wrong = [binding for binding in bindings if not binding.is_from(library)]
    if pid is None:
        if len(wrong) == len(bindings):
            return wrong[0].told() if wrong else "no process told of %s" % where, None
    else:
        own = [binding for binding in bindings if binding.pid == pid]
        if not own:
            return "the program did not tell of %s; is it statically linked?" % where, None
        for binding in own:
            if binding in wrong:
                return binding.told(), None
    return None, "; ".join(sorted({binding.told() for binding in wrong})) or None
