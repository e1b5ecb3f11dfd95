#!/usr/bin/env python3
"""Says which of Debian's libraries a hakmem command has linked in, and what follows for who passes it on.

usage: tools/linked_libraries.py

The text belongs to each copy of the command, but for Debian's package: that
one asks for libdw1.
"""
import subprocess
import sys

# Debian's package, its source, what it is called, its license.
LIBRARIES = [
    ("libdw-dev", "elfutils", "libdw and libelf", "LGPL-3.0-or-later OR GPL-2.0-or-later"),
    ("libiberty-dev", "libiberty", "libiberty's demangler", "LGPL-2.1-or-later"),
    ("liblzma-dev", "xz-utils", "liblzma (in the public domain)", "NOASSERTION"),
    ("libbz2-dev", "bzip2", "libbz2", "bzip2-1.0.6"),
    ("libzstd-dev", "libzstd", "libzstd (from Debian 13 on)", "BSD-3-Clause OR GPL-2.0-only"),
]
# In /usr/share/common-licenses.
LICENSES = ["GPL-3", "LGPL-3", "LGPL-2.1"]

END = """
They are taken as they are, from Debian's packages. Their sources are Debian's
source packages of these versions (apt-get source). To use another libdw,
install it and build the command from hakmem's sources: tools/build_command.sh.
hakmem's license allows that. The library libhakmem has none of them.
"""


def version(package):
    return subprocess.run(["dpkg-query", "--show", "--showformat=${source:Version}", package], check=True,
                          stdout=subprocess.PIPE, text=True).stdout


def notice(version_of=version):
    lines = ["The hakmem command has these libraries linked in:", ""]
    for package, source, name, license_name in LIBRARIES:
        lines.append("  %s, of %s %s: %s" % (name, source, version_of(package), license_name))
    return "\n".join(lines) + "\n" + END


def main():
    if len(sys.argv) != 1:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    sys.stdout.write(notice())
    return 0


if __name__ == "__main__":
    sys.exit(main())
