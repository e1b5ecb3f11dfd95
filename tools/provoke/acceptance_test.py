#!/usr/bin/python3
"""As a new user would: two commands lead to the right sentence and advice.

Usage: acceptance_test.py HAKMEM LIBRARY PROVOKE MINUS_TWO IN_CGROUP

Four programs run out of memory, each in its own way: Python under ulimit -v,
Redis in a small cgroup, a program with as many mappings as there may be, and a
C++ program that asks for size_t(-2). `hakmem run` must say what was hit, and
the command that it names, `hakmem explain`, what to do about it.
"""
import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading

NOT_PERMITTED = 77
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"

PYTHON = "blocks = [bytearray(1 << 20) for _ in range(5000)]"


class User:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        self.folder = folder

    def call(self, command):
        return subprocess.run(
            ["bash", "-c", command], cwd=self.folder, capture_output=True, text=True, check=False,
            env={"PATH": os.path.dirname(self.arguments.hakmem) + ":" + PATH, "HOME": self.folder,
                 "HAKMEM_LIBRARY_DIR": os.path.dirname(self.arguments.library), "TMPDIR": self.folder})

    def two_commands(self, run):
        """What the first one says, the program's exit status, and what the second says."""
        first = self.call(run)
        named = re.search(r"hakmem explain \S+", first.stderr)
        if named is None:
            return first, ""
        return first, self.call(named.group(0)).stdout


def complaints(name, first, second, sentences, advice):
    said = re.sub(r"\s+", " ", first.stderr)
    told = re.sub(r"\s+", " ", second)
    for sentence in sentences:
        if not re.search(sentence, said):
            yield "%s: `hakmem run` does not say %r:\n%s" % (name, sentence, first.stderr)
        if not re.search(sentence, told):
            yield "%s: `hakmem explain` does not say %r:\n%s" % (name, sentence, second)
    for text in advice:
        if not re.search(text, told):
            yield "%s: no advice like %r:\n%s" % (name, text, second)


def python(user):
    first, second = user.two_commands("ulimit -v 600000; hakmem run -- /usr/bin/python3 -c '%s'" % PYTHON)
    if "MemoryError" not in first.stderr or first.returncode != 1:
        yield "python: ended with %d: %s" % (first.returncode, first.stderr)
    yield from complaints("python", first, second, [r"RLIMIT_AS"], [r"ulimit -v", r"LimitAS="])


def mappings(user):
    first, second = user.two_commands("hakmem run -- %s max_map_count" % user.arguments.provoke)
    if first.returncode == NOT_PERMITTED:
        print("mappings: not on this machine: " + first.stderr.strip())
        return
    yield from complaints("mappings", first, second, [r"vm\.max_map_count"],
                          [r"sysctl -w vm\.max_map_count=\d+"])


def minus_two(user):
    first, second = user.two_commands("hakmem run -- %s ''" % user.arguments.minus_two)
    # bash may have become the program, or tell of its end.
    if first.returncode not in (-signal.SIGABRT, 128 + signal.SIGABRT):
        yield "minus_two: ended with %d, not by SIGABRT" % first.returncode
    yield from complaints("minus_two", first, second, [r"18446744073709551614 bytes \(that is -2"],
                          [r"negative number", r"minus_two\.cc:\d+"])


def fill(path, ended):
    """Sets values in the Redis behind the socket, once it is there, until it is gone."""
    value = b"v" * 50000
    while not ended.is_set():
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                for number in range(100000):
                    key = b"k%d" % number
                    client.sendall(b"*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n" % (
                        len(key), key, len(value), value))
                    if not client.recv(100):
                        return
        except (FileNotFoundError, ConnectionRefusedError):
            os.sched_yield()
        except OSError:
            return


def redis_under(user, before, options):
    """Runs a Redis that is filled until it ends, by `hakmem run`."""
    path = user.folder + "/socket"
    ended = threading.Event()
    client = threading.Thread(target=fill, args=(path, ended))
    client.start()
    try:
        return user.two_commands("%s hakmem run %s -- redis-server --port 0 --unixsocket %s --save '' --dir %s >/dev/null"
                                 % (before, options, path, user.folder))
    finally:
        ended.set()
        client.join()
        if os.path.exists(path):
            os.unlink(path)


def redis(user):
    first, second = redis_under(user, "%s %d" % (user.arguments.in_cgroup, 64 << 20), "")
    if first.returncode != NOT_PERMITTED:
        if first.returncode != 128 + signal.SIGKILL:
            yield "redis: ended with %d, not by SIGKILL" % first.returncode
        yield from complaints("redis", first, second, [r"kernel killed redis-server.* may have 64\.0 MiB"],
                              [r"docker update --memory", r"MemoryMax=128M", r"HAKMEM_HEAP_LIMIT=48M"])
        return
    print("redis: no cgroup can be made here, so under --limit: " + first.stderr.strip())
    first, second = redis_under(user, "", "--limit=64M")
    yield from complaints("redis", first, second, [r"HAKMEM_HEAP_LIMIT allows 64\.0 MiB"], [r"HAKMEM_HEAP_LIMIT="])


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("hakmem", "library", "provoke", "minus_two", "in_cgroup"):
        parser.add_argument(name, type=os.path.abspath)
    arguments = parser.parse_args()
    bad = []
    for case in (python, redis, mappings, minus_two):
        with tempfile.TemporaryDirectory() as folder:
            found = list(case(User(arguments, folder)))
        print("%-10s %s" % (case.__name__, "FAILED" if found else "ok"))
        bad += found
    for text in bad:
        print(text)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
