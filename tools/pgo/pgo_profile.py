#!/usr/bin/python3
"""The parts of train.sh and check.sh that are more than commands.

Usage: pgo_profile.py train LIBRARY BAZEL_BIN OUT    runs the training set
       pgo_profile.py compare THEN NOW               two profiles as text
LIBRARY counts; each program leaves NAME.profraw in OUT. `compare` says how much
of what was counted then belongs to functions that have changed or gone, and
exits with 1 if that is more than a tenth.
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/bench_harness"))
import suite  # noqa: E402

# What anybody can run from a fresh clone; whole programs are left for measuring.
NO_GROUPS = ("programs", "brief", "micro")
# It starts many processes that do nothing, and each would write a profile.
LEFT_OUT = ("start_exit",)
STALE = 0.1


def training_set(folder):
    return [program for program in suite.load(folder)
            if program.group not in NO_GROUPS and program.name not in LEFT_OUT]


def run_program(program, library, values, out):
    work = values["work"]
    if program.prepare:
        subprocess.run(suite.fill(program.prepare, values), cwd=work, check=True)
    raw = out / (program.name + ".profraw")
    # The runtime writes when the program ends, by malloc as any other code.
    done = subprocess.run(
        suite.fill(program.command, values), cwd=work, check=False, text=True,
        timeout=20 * program.timeout_seconds, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "LD_PRELOAD": str(library), "LLVM_PROFILE_FILE": str(raw)})
    if done.returncode != 0:
        sys.exit("%s: status %d\n%s" % (program.name, done.returncode, done.stdout))
    if not raw.is_file():
        sys.exit("%s wrote no profile: does %s count?" % (program.name, library))


def train(library, bazel_bin, out):
    values = {"bench": bazel_bin / "benchmarks", "replay": bazel_bin / "benchmarks/traces",
              "traces": ROOT / "benchmarks/traces", "programs": ROOT / "benchmarks/programs",
              "work": out, "cpus": os.cpu_count()}
    for program in training_set(ROOT / "benchmarks/suite"):
        run_program(program, library, values, out)


def parse(text):
    """{(function, hash): sum of its counters} of a profile as text."""
    functions = {}
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if line and line[0] not in "#:"]
        if not lines:
            continue
        name, key, count = lines[0], int(lines[1]), int(lines[2])
        functions[name, key] = sum(int(line) for line in lines[3:3 + count])
    return functions


def compare(then, now):
    """(functions of `then`, those of them that are not in `now`, their part of the counts)."""
    lost = {key: count for key, count in then.items() if key not in now}
    total = sum(then.values())
    return len(then), len(lost), sum(lost.values()) / total if total else 1.0


def main(arguments):
    if len(arguments) == 4 and arguments[0] == "train":
        train(*(pathlib.Path(argument).absolute() for argument in arguments[1:]))
        return 0
    if len(arguments) == 3 and arguments[0] == "compare":
        then, now = (parse(pathlib.Path(path).read_text()) for path in arguments[1:])
        functions, lost, part = compare(then, now)
        print("The profile knows %d functions, of which %d are no longer what was trained, "
              "with %.1f %% of the counts." % (functions, lost, 100 * part))
        if part > STALE:
            print("It is out of date; tools/pgo/train.sh makes a new one.")
            return 1
        return 0
    print(__doc__.strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
