#!/usr/bin/env python3
"""run_interposed.py LIBRARY WORKLOAD SHIM: functions of libc that a program replaces, and that allocate.

Runs WORKLOAD with LIBRARY and SHIM preloaded in both orders, and with SHIM alone, which must work as
well: then nothing is wrong with it.
"""
import os
import signal
import subprocess
import sys

OPTIONS = [
    {},
    {"HAKMEM_DECAY_MS": "0", "HAKMEM_STATS": "/dev/null"},
]


def run(preload, workload, arguments, options):
    environment = dict(os.environ, LD_PRELOAD=":".join(preload), **options)
    return subprocess.run([workload] + arguments, env=environment, text=True, errors="replace",
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)


def complaints(library, workload, shim):
    for preload in [[shim], [shim, library], [library, shim]]:
        names = " ".join(os.path.basename(path) for path in preload)
        for options in OPTIONS:
            done = run(preload, workload, [], options)
            if done.returncode != 0 or done.stdout != "done\n" or done.stderr != "":
                yield "%s, %s: ended with %d, %r, %r" % (
                    names, options, done.returncode, done.stdout, done.stderr[:500])
        if library not in preload:
            continue
        done = run(preload, workload, ["double_free"], {})
        if done.returncode != -signal.SIGABRT or done.stderr.count("hakmem: fatal: double free of") != 1:
            yield "%s: a double free ended with %d, %r" % (names, done.returncode, done.stderr[:500])


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    found = list(complaints(*[os.path.abspath(path) for path in sys.argv[1:]]))
    print("\n".join(found or ["served in both orders"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
