"""What the machine is, and how quiet it is."""
import json
import os
import platform
import subprocess

import numpy

# Above these a difference of a few per cent may be the machine's.
NOISE_PERCENT = 5.0
LOAD_PER_PROCESSOR = 0.5
STOLEN_PERCENT = 1.0


def _first_value(path, key):
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                name, _, value = line.partition("=" if "=" in line else ":")
                if name.strip() == key:
                    return value.strip().strip('"')
    except OSError:
        pass
    return None


def _huge_pages():
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="utf-8") as file:
            return file.read().split("[")[1].split("]")[0]
    except (OSError, IndexError):
        return "unknown"


def describe():
    """The constant part of `machine` in results.json."""
    memory = _first_value("/proc/meminfo", "MemTotal") or "0 kB"
    return {
        "cpu": _first_value("/proc/cpuinfo", "model name") or platform.machine(),
        "processors": os.cpu_count(),
        "memory_bytes": int(memory.split()[0]) * 1024,
        "kernel": platform.release(),
        "os": _first_value("/etc/os-release", "PRETTY_NAME") or platform.system(),
        "huge_pages": _huge_pages(),
    }


def load():
    return round(os.getloadavg()[0], 2)


def _processor_times():
    """(all, stolen by other guests of the host), in ticks."""
    try:
        with open("/proc/stat", encoding="utf-8") as file:
            ticks = [int(word) for word in file.readline().split()[1:9]]
        return sum(ticks), ticks[7]
    except (OSError, ValueError, IndexError):
        return 0, 0


class Noise:
    """Watches a fixed loop all along; tools/measure/calibrate.cc runs it."""

    def __init__(self, calibrate, load_before):
        self._calibrate = str(calibrate)
        self._load_before = load_before
        self._times = _processor_times()
        self._seconds = []

    def sample(self):
        done = subprocess.run([self._calibrate], check=True, capture_output=True, text=True)
        self._seconds += json.loads(done.stdout)

    def verdict(self):
        """The changing part of `machine` in results.json."""
        now = _processor_times()
        elapsed = now[0] - self._times[0]
        stolen = 100 * (now[1] - self._times[1]) / elapsed if elapsed else 0
        return judge_noise(self._seconds, self._load_before, stolen)


def judge_noise(seconds, load_before, stolen_percent):
    """How much the loop varied, leaving out the slowest and the fastest tenth."""
    spread = 0.0
    if seconds:
        fast, slow = numpy.percentile(seconds, (10, 90))
        spread = 100 * float(slow / fast - 1)
    remarks = []
    if spread > NOISE_PERCENT:
        remarks.append("a loop that always does the same took up to %.0f %% longer at times" % spread)
    if load_before > LOAD_PER_PROCESSOR * os.cpu_count():
        remarks.append("the load average was %.1f before anything was run" % load_before)
    if stolen_percent > STOLEN_PERCENT:
        remarks.append("other guests of the host took %.1f %% of the processors' time" % stolen_percent)
    noisy = bool(remarks)
    if noisy:
        remarks.insert(0, "The machine is noisy; small differences mean little")
    return {"load_before": load_before, "load_after": load(), "noise_percent": round(spread, 2),
            "noisy": noisy, "remarks": remarks}
