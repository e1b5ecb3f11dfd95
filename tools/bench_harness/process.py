"""Runs one program once and says how it went."""
import contextlib
import ctypes
import dataclasses
import json
import math
import os
import pathlib
import re
import select
import signal
import subprocess

# Linux: descendants that lose their parent become this process's children.
_PR_SET_CHILD_SUBREAPER = 36
_MOST_OUTPUT = 1 << 20
# In place of a metric: what the program prints does not matter.
UNMEASURED = "none"
_RESULT = "result: "
_NOT_PRELOADED = "cannot be preloaded"
# The same for everybody, and nothing of the user's.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NUMBERS = ("operations", "seconds", "minor_faults", "system_seconds", "peak_rss_bytes",
           "settled_rss_bytes", "live_bytes", "release_seconds")


@dataclasses.dataclass
class Outcome:
    """How one run went; `usage` is what tools/measure found, `result` what the program said."""
    status: str
    detail: str | None = None
    usage: dict | None = None
    result: dict | None = None


def adopt_descendants():
    """So that daemons which a program leaves behind can be found and ended."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def environment(work):
    temporary = pathlib.Path(work, "tmp")
    temporary.mkdir(exist_ok=True)
    return {"PATH": _PATH, "HOME": str(work), "TMPDIR": str(temporary), "LANG": "C"}


def search_path():
    return _PATH


def _children():
    found = set()
    for path in pathlib.Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found.update(map(int, path.read_text().split()))
    return found


def _end(child, others):
    """Ends the process group of `child` and all that descends from it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    while True:
        left = _children() - others
        if not left:
            return
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def wait(child, seconds):
    """Whether it ended in time; sleeps meanwhile, so as not to disturb it."""
    descriptor = os.pidfd_open(child.pid)
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def _read(path):
    with open(path, "rb") as file:
        return file.read(_MOST_OUTPUT).decode(errors="replace")


def _last_words(errors):
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return "; it said: %s" % lines[-1][:300] if lines else ""


def parse_result(output):
    """(result or None, what is wrong with it or None)."""
    lines = [line for line in output.splitlines() if line.startswith(_RESULT)]
    if not lines:
        return None, None
    if len(lines) > 1:
        return None, "it printed %d result lines" % len(lines)
    text = lines[0][len(_RESULT):]
    try:
        result = json.loads(text)
    except ValueError:
        return None, "its result line is not JSON: %s" % text[:200]
    if not isinstance(result, dict):
        return None, "its result line is no object: %s" % text[:200]
    for key in NUMBERS:
        value = result.get(key)
        if key in result and (isinstance(value, bool) or not isinstance(value, (int, float))
                              or not math.isfinite(value) or value < 0):
            return None, "its result line says %s is %r" % (key, value)
    if ("operations" in result) != ("seconds" in result):
        return None, "its result line has one of operations and seconds without the other"
    if "operations" in result and not (result["operations"] > 0 and result["seconds"] > 0):
        return None, "its result line says %s operations in %s s" % (result["operations"], result["seconds"])
    return result, None


def read_figure(output, pattern):
    """(result or None, what is wrong with it or None), by what the suite says is printed last."""
    found = list(re.finditer(pattern, output, re.MULTILINE))
    if not found:
        return None, "it did not print its figure: nothing is like %s" % pattern
    (kind, text), = found[-1].groupdict().items()
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        return None, "its figure is %s" % text
    return {"operations": value, "seconds": 1.0} if kind == "rate" else {"operations": 1, "seconds": value}, None


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal %d" % number


def judge(usage, output, errors, metric, figure=None):
    """The outcome of a run that ended by itself."""
    for line in errors.splitlines():
        if _NOT_PRELOADED in line:
            return Outcome("not_loaded", line.strip()[:300], usage)
    status = usage["status"]
    if usage["signal"]:
        return Outcome("crashed", _signal_name(usage["signal"]) + _last_words(errors), usage)
    # A shell's way to say that its command was ended by a signal.
    if 128 < status <= 128 + signal.NSIG and _signal_name(status - 128).startswith("SIG"):
        return Outcome("crashed", "exit status %d (%s)%s" % (
            status, _signal_name(status - 128), _last_words(errors)), usage)
    if status != 0:
        return Outcome("failed", "exit status %d%s" % (status, _last_words(errors)), usage)
    result, wrong = None, None
    if metric != UNMEASURED:
        result, wrong = read_figure(output, figure) if figure else parse_result(output)
    if wrong:
        return Outcome("failed", wrong, usage)
    if metric == "throughput" and not (result and "operations" in result):
        return Outcome("failed", "it printed no result line with operations", usage)
    return Outcome("ok", None, usage, result)


class Runner:
    """Runs commands through tools/measure in one scratch folder; `wait_for` is `wait`, but in tests of it."""

    def __init__(self, measure, scratch, wait_for=wait):
        self.measure = str(measure)
        self.scratch = pathlib.Path(scratch)
        self.wait_for = wait_for

    def run(self, command, work, settings=None, timeout=60, metric=None, prefix=(), figure=None, count=()):
        """Runs `command` in `work`; `settings` is what its environment has beyond the common."""
        usage_file = self.scratch / "usage.json"
        usage_file.unlink(missing_ok=True)
        line = [self.measure, str(usage_file), *count]
        if prefix:
            # A tracer gets the settings for its child, and not for itself.
            words = [word for item in (settings or {}).items() for word in ("-E", "%s=%s" % item)]
            line += ["--", *prefix, *words, "--", *command]
        else:
            line += ["%s=%s" % item for item in (settings or {}).items()] + ["--", *command]
        output, errors = self.scratch / "stdout", self.scratch / "stderr"
        others = _children()
        # Files, because a daemon that is left would hold a pipe open.
        with open(output, "wb") as out, open(errors, "wb") as err:
            child = subprocess.Popen(line, cwd=work, env=environment(work), stdin=subprocess.DEVNULL,
                                     stdout=out, stderr=err, start_new_session=True)
            in_time = False
            try:
                in_time = self.wait_for(child, timeout)
            finally:
                _end(child, others)
        if not in_time:
            return Outcome("timed_out", "not done after %g s%s" % (timeout, _last_words(_read(errors))))
        try:
            usage = json.loads(usage_file.read_text())
        except (FileNotFoundError, ValueError):
            return Outcome("failed", "tools/measure wrote no result%s" % _last_words(_read(errors)))
        return judge(usage, _read(output), _read(errors), metric, figure)
