"""The fuzz targets: where they are built, and what libFuzzer says of a run.

HAK_BAZEL may hold another command line for bazel.
"""
import os
import pathlib
import re
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
VARIANTS = ("release", "hardened", "debug")
# Those that exist once per variant; the variants share a corpus.
OF_VARIANTS = ("api_fuzz", "class_boundary_fuzz", "header_validation_fuzz", "cross_thread_free_fuzz", "symbols_fuzz")
OTHERS = ("ace_fuzz", "size_class_fuzz", "options_fuzz", "limits_fuzz", "call_trace_fuzz", "explain_fuzz")
MAX_LEN = {"api_fuzz": 1024, "ace_fuzz": 1024, "class_boundary_fuzz": 512, "header_validation_fuzz": 512,
           "cross_thread_free_fuzz": 512, "symbols_fuzz": 512, "size_class_fuzz": 300, "options_fuzz": 300}


def all_names(variants=VARIANTS):
    return ["%s_%s" % (name, variant) for name in OF_VARIANTS for variant in variants] + list(OTHERS)


def family(name):
    """The name without its variant: what its corpus is called, with "_fuzz" at the end."""
    for variant in VARIANTS:
        name = name.removesuffix("_" + variant)
    return name


def seeds(name):
    """The folder of the inputs that are checked in."""
    return ROOT / "fuzz" / "corpus" / family(name).removesuffix("_fuzz")


def build(names, options=()):
    """Builds the targets; returns the folder that find() looks in."""
    bazel = shlex.split(os.environ.get("HAK_BAZEL", "bazel"))
    subprocess.run([*bazel, "build", *options, *("//fuzz:" + name for name in names)], check=True, cwd=ROOT)
    out = subprocess.run([*bazel, "info", *options, "bazel-bin"], check=True, cwd=ROOT, text=True,
                         stdout=subprocess.PIPE)
    return pathlib.Path(out.stdout.strip()) / "fuzz"


def find(folder, name):
    """The program of a target in a build's folder, or in a folder of programs."""
    for pattern in (name + ".sh.runfiles/*/fuzz/" + name + "_bin", name + "_bin"):
        for path in sorted(pathlib.Path(folder).glob(pattern)):
            return path.resolve()
    raise FileNotFoundError("no program of %s in %s" % (name, folder))


def figures(log):
    """What a run's output says: executions, edges before and after, both of which may be missing (0).

    Before is once all of the corpus is read: lines about a part of it ("pulse") come earlier.
    """
    executed = [int(n) for n in re.findall(r"^stat::number_of_executed_units: (\d+)", log, re.MULTILINE)]
    runs = [int(n) for n in re.findall(r"^#(\d+)\s", log, re.MULTILINE)]
    edges = [int(n) for n in re.findall(r"^#\d+\s.*?cov: (\d+)", log, re.MULTILINE)]
    read = re.search(r"^#\d+\sINITED cov: (\d+)", log, re.MULTILINE)
    return {"executions": (executed or runs or [0])[-1],
            "edges_before": int(read.group(1)) if read else 0,
            "edges": max(edges, default=0)}


def cause(log):
    """One line that is the same for all inputs that fail in the same way."""
    for pattern in (r"hakmem: fatal: .*", r"SUMMARY: .*", r"ERROR: .*", r"==\d+== ?ERROR.*"):
        match = re.search(pattern, log)
        if match:
            line = re.sub(r"==\d+==", "", match.group())
            line = re.sub(r"0x[0-9a-f]+", "0xP", line)
            return re.sub(r"\(\d+ vs \d+\)", "(N vs N)", line).strip()
    return "unknown"
