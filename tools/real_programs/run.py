#!/usr/bin/env python3
"""Runs programs/*.sh and newest/*.sh on libc's malloc and on hakmem, and compares them.

Each script is one program at work. It begins with lines `# KEY: VALUE`:
  title    what it does
  serves   what must have allocated from hakmem: names as in HAKMEM_STATS,
           regular expressions, separated by blanks
  seconds  as many as it may take
  heavy    yes: only with --all
  needs    commands it uses, beyond coreutils
(those in newest/ are tools/newest_userland.sh's, and run if --only names them)
and is run twice, in an empty folder of the same name, with a clean
environment. The folder is another the next time, so output must not name it. Its standard output and exit status must be the same both times
(and 0); standard error is only kept. With hakmem, LD_PRELOAD holds for the
script's shell and everything it starts. As many scripts run at once as there
are processors, those that may take longest first. How long one takes is nothing
that it fails for, unless --patience says so.

--cache keeps what was found for a library, a script and the packages that are
installed: libc's output, and that a program passed. Failures are never kept.
"""
import argparse
import concurrent.futures
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import program_file  # noqa: E402
import statistics_file  # noqa: E402

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass
class Program:
    script: pathlib.Path
    title: str
    serves: list
    seconds: int
    heavy: bool
    needs: list

    @property
    def name(self):
        return self.script.stem

    @property
    def newest(self):
        return self.script.parent.name == "newest"


class Failure(Exception):
    """Why a program does not pass."""


class Clock:
    """What waits for processes; tests have another."""

    @staticmethod
    def end(pids, seconds):
        """Whether all of them end in so many seconds; None: as many as they take."""
        deadline = seconds and time.monotonic() + seconds
        for pid in pids:
            try:
                process = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            try:
                left = deadline and max(0, deadline - time.monotonic())
                if not select.select([process], [], [], left)[0]:
                    return False
            finally:
                os.close(process)
        return True


class Groups:
    """The process groups of scripts that run, one for each of the pool's threads."""

    def __init__(self, clock=Clock()):
        self.clock = clock
        self._lock = threading.Lock()
        self._running = set()
        self._closed = False

    def start(self, command, **how):
        """A script in a group of its own; none any more once `close` was called."""
        with self._lock:
            if self._closed:
                raise Failure("interrupted")
            child = subprocess.Popen(command, start_new_session=True, **how)
            self._running.add(child.pid)
        return child

    def end(self, child):
        """Ends what a script has left behind, servers above all."""
        end_group(child.pid, self.clock)
        child.wait()
        with self._lock:
            self._running.discard(child.pid)

    def close(self):
        """Ends all that run, so that those who wait for them go on."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for group in running:
            end_group(group, self.clock)


class Cache:
    """Outputs and passes of earlier runs; without a folder it keeps nothing."""

    def __init__(self, folder, library):
        self.folder = pathlib.Path(folder) if folder else None
        if not self.folder:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self.library = library.read_bytes()
        self.common = subprocess.run(
            ["dpkg-query", "-W"], check=True, stdout=subprocess.PIPE).stdout
        self.common += bytes(HERE)
        for path in sorted(HERE.glob("*")):
            if path.is_file():
                self.common += path.name.encode() + path.read_bytes()

    def _entry(self, kind, program, *more):
        digest = hashlib.sha256(self.common + program.script.read_bytes())
        for part in more:
            digest.update(part)
        return self.folder / ("%s-%s-%s" % (kind, program.name, digest.hexdigest()[:32]))

    def output(self, program):
        """libc's output, or None."""
        if not self.folder:
            return None
        entry = self._entry("libc", program)
        return entry.read_bytes() if entry.exists() else None

    def keep_output(self, program, output):
        if self.folder:
            self._entry("libc", program).write_bytes(output)

    def passed(self, program):
        return (self.folder is not None
                and self._entry("passed", program, self.library).exists())

    def keep_pass(self, program):
        if self.folder:
            self._entry("passed", program, self.library).touch()


def load_program(script):
    keys = {}
    for line in script.read_text().splitlines():
        match = re.fullmatch(r"# (\w+): (.*)", line)
        if match:
            keys[match[1]] = match[2]
    return Program(script, keys["title"], keys["serves"].split(),
                   int(keys["seconds"]), keys.get("heavy") == "yes",
                   keys["needs"].split())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(work, library, statistics):
    values = {
        "PATH": PATH,
        "HOME": str(work),
        "TMPDIR": str(work / "tmp"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PROGRAMS": str(HERE),
        "FREE_PORT": str(free_port()),
    }
    if library:
        values["LD_PRELOAD"] = str(library)
        values["HAKMEM_STATS"] = str(statistics)
    return values


def living(group):
    """The processes of the group; not those that wait for somebody to ask how they ended."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, its_group = path.read_text(errors="replace").rsplit(")", 1)[1].split()[:3]
            if int(its_group) == group and state not in "ZX":
                found.append(int(path.parent.name))
    return found


def end_group(group, clock):
    """Asks its processes to end; those that do not in 3 seconds are ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        # Meanwhile they may have started others.
        while pids := living(group):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, number)
            if not clock.end(pids, 3):
                break


def run_once(program, folder, label, library, groups, patience=None):
    """Runs the script; returns its output. Raises Failure."""
    work = folder / "work"
    if work.exists():
        shutil.rmtree(work)
    (work / "tmp").mkdir(parents=True)
    # Servers step down to a user of their own.
    for path in (work, work / "tmp"):
        path.chmod(0o777)
    statistics = folder / "statistics.jsonl"
    statistics.touch()
    statistics.chmod(0o666)
    out_path, err_path = folder / (label + ".out"), folder / (label + ".err")
    with open(out_path, "wb") as out, open(err_path, "wb") as err:
        # CPython's tests send themselves signals, which a shell's background ignores.
        child = groups.start(
            ["env", "--default-signal=INT,QUIT", "/bin/bash", str(program.script)], cwd=work,
            env=environment(work, library, statistics),
            stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        try:
            done = groups.clock.end([child.pid], patience)
        finally:
            groups.end(child)
    where = "on hakmem" if library else "on libc's malloc already"
    if not done:
        raise Failure("not done after %d s %s" % (patience, where))
    if child.returncode != 0:
        raise Failure("exit status %d %s" % (child.returncode, where))
    return out_path.read_bytes()


def check_served(program, folder):
    """Raises Failure unless hakmem served every program it should have."""
    records = statistics_file.read(folder / "statistics.jsonl")
    for pattern in program.serves:
        matching = [r for r in records if re.fullmatch(pattern, r["program"])]
        if not matching:
            raise Failure("no process %r told of its allocations; there were: %s"
                          % (pattern, ", ".join(sorted({r["program"] for r in records})) or "none"))
        if sum(map(statistics_file.allocations, matching)) == 0:
            raise Failure("%r allocated nothing from hakmem" % pattern)
    return len(records)


def check_complaints(folder):
    """Raises Failure when hakmem itself had something to say."""
    text = (folder / "hakmem.err").read_text(errors="replace")
    for line in text.splitlines():
        if "hakmem: " in line or "ERROR: ld.so: " in line:
            raise Failure("standard error has: %s" % line.strip())


def run_program(program, folder, library, cache, groups, patience=None):
    """Runs the program both ways; returns what to say of it. Raises Failure."""
    missing = [c for c in program.needs if shutil.which(c, path=PATH) is None]
    if missing:
        raise Failure("not installed: %s (tools/setup.sh%s)"
                      % (", ".join(missing), " --all" if program.heavy else ""))
    if cache.passed(program):
        return "unchanged"
    expected = cache.output(program)
    beside = "as kept"
    if expected is None:
        begin = time.monotonic()
        expected = run_once(program, folder, "libc", None, groups, patience)
        beside = "%.0f s" % (time.monotonic() - begin)
        if not expected:
            raise Failure("it says nothing, so there is nothing to compare")
        cache.keep_output(program, expected)
    begin = time.monotonic()
    actual = run_once(program, folder, "hakmem", library, groups, patience)
    seconds = time.monotonic() - begin
    if actual != expected:
        (folder / "libc.out").write_bytes(expected)
        raise Failure("other output on hakmem: diff %s/{libc,hakmem}.out" % folder)
    check_complaints(folder)
    processes = check_served(program, folder)
    cache.keep_pass(program)
    return "%.0f s; libc %s; %d processes" % (seconds, beside, processes)


def run_all(programs, root, library, cache, patience):
    """Runs them and prints a line for each as it ends; returns how many failed."""
    failed = 0
    groups = Groups()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        runs = {}
        try:
            for program in sorted(programs, key=lambda p: -p.seconds):
                folder = root / program.name
                folder.mkdir()
                runs[pool.submit(run_program, program, folder, library, cache, groups, patience)] = program
            for run in concurrent.futures.as_completed(runs):
                program = runs[run]
                try:
                    print("ok %s (%s)" % (program.name, run.result()), flush=True)
                    shutil.rmtree(root / program.name)
                except (Failure, statistics_file.BadStatistics) as failure:
                    failed += 1
                    print("FAIL %s: %s\n     logs: %s"
                          % (program.name, failure, root / program.name), flush=True)
        finally:
            # Of a run that goes on to its end there are none.
            for run in runs:
                run.cancel()
            groups.close()
    return failed


def parse_arguments(names):
    parser = argparse.ArgumentParser(prog="tools/real_programs.sh")
    parser.add_argument("--all", action="store_true",
                        help="the heavier programs, too")
    parser.add_argument("--library", metavar="PATH",
                        help="instead of building hakmem")
    parser.add_argument("--only", action="append", choices=names, metavar="NAME",
                        help="this program; may be repeated")
    parser.add_argument("--cache", metavar="DIR",
                        help="keep what passed, and do not run it again")
    parser.add_argument("--patience", type=float, metavar="SECONDS",
                        help="a program that is not done after so many counts as hung")
    parser.add_argument("--list", action="store_true")
    return parser.parse_args()


def main():
    programs = [load_program(p) for folder in ("programs", "newest") for p in sorted((HERE / folder).glob("*.sh"))]
    arguments = parse_arguments([p.name for p in programs])
    if arguments.list:
        for program in programs:
            print("%-14s %s%s" % (program.name, program.title,
                                  " (tools/newest_userland.sh)" if program.newest else " (--all)" if program.heavy else ""))
        return 0
    source = pathlib.Path(arguments.library)
    if not source.is_file():
        print("real_programs: no such library: %s" % source, file=sys.stderr)
        return 2
    chosen = [p for p in programs
              if (p.name in arguments.only if arguments.only
                  else not p.newest and (arguments.all or not p.heavy))]

    # Servers that have stepped down to another user must reach it.
    root = pathlib.Path(tempfile.mkdtemp(prefix="hakmem_real_programs."))
    root.chmod(0o755)
    library = pathlib.Path(program_file.to_preload(source, root))
    library.chmod(0o755)
    failed = run_all(chosen, root, library, Cache(arguments.cache, library), arguments.patience)
    if not failed:
        shutil.rmtree(root)
    print("%d passed, %d failed" % (len(chosen) - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    # A plain SIGTERM would leave servers behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
