"""Whether LD_PRELOAD can have an effect on a program, before it is run."""
import os
import re
import shutil
import stat
import struct

PT_INTERP = 3
ELF64 = 2
MACHINES = {"x86_64": 62, "aarch64": 183}


class Unsuitable(Exception):
    """The sentence says why; status is what a shell would exit with."""

    def __init__(self, sentence, status=2):
        super().__init__(sentence)
        self.status = status


def to_preload(library, folder):
    """A copy of the library in the folder, of a name that LD_PRELOAD, a list separated by spaces and colons, can have."""
    name = re.sub(r"[\s:]", "_", os.path.basename(library))
    return shutil.copyfile(library, os.path.join(folder, name))


def find(name):
    """The program's path, as execvp would find it."""
    if os.path.isdir(name) and "/" in name:
        raise Unsuitable("%s is a folder" % name, 126)
    path = shutil.which(name)
    if path:
        return path
    if "/" in name and os.path.exists(name):
        raise Unsuitable("%s cannot be executed" % name, 126)
    raise Unsuitable("there is no program %s%s"
                     % (name, "" if "/" in name else " in PATH"), 127)


def check(path):
    """Raises Unsuitable when the library would not be loaded into `path`."""
    for _ in range(5):
        try:
            with open(path, "rb") as file:
                start = file.read(256)
                if start[:4] == b"\x7fELF":
                    _check_elf(path, file, start)
                    _check_privileges(path)
                    return
        except PermissionError:
            # Executable but not readable: it can be run, not looked at.
            return
        if start[:2] != b"#!":
            raise Unsuitable("%s is neither an ELF program nor a script that "
                             "names its interpreter" % path, 126)
        words = start[2:].split(b"\n")[0].split()
        if not words:
            raise Unsuitable("%s names no interpreter" % path, 126)
        path = os.fsdecode(words[0])
        # env takes options and settings before the interpreter's name.
        if os.path.basename(path) == "env" and len(words) > 1:
            names = [w for w in words[1:] if not w.startswith(b"-") and b"=" not in w]
            path = find(os.fsdecode(names[0])) if names else path
        if not os.path.exists(path):
            raise Unsuitable("its interpreter %s does not exist" % path, 127)


def _check_elf(path, file, start):
    machine = struct.unpack_from("<H", start, 18)[0]
    if start[4] != ELF64 or machine != MACHINES.get(os.uname().machine):
        raise Unsuitable("%s is for another kind of processor than hakmem was "
                         "built for" % path)
    offset, = struct.unpack_from("<Q", start, 32)
    size, count = struct.unpack_from("<HH", start, 54)
    file.seek(offset)
    headers = file.read(size * count)
    kinds = [struct.unpack_from("<I", headers, i * size)[0] for i in range(count)]
    if PT_INTERP not in kinds:
        raise Unsuitable("%s is statically linked: LD_PRELOAD has no effect on it"
                         % path)


def _check_privileges(path):
    status = os.stat(path)
    gains_user = status.st_mode & stat.S_ISUID and status.st_uid != os.getuid()
    gains_group = status.st_mode & stat.S_ISGID and status.st_gid != os.getgid()
    if gains_user or gains_group:
        raise Unsuitable("%s is setuid or setgid: the loader ignores LD_PRELOAD "
                         "for it" % path)
    try:
        os.getxattr(path, "security.capability")
    except OSError:
        return
    if os.getuid() != 0:
        raise Unsuitable("%s has file capabilities: the loader ignores LD_PRELOAD "
                         "for it" % path)
