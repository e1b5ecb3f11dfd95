#!/usr/bin/env python3
"""Checks the models of the lock-free parts with Spin, by all interleavings.

Usage: models_test.py MODEL.pml…
A model's comments say what is run, each line with the macros that are defined:
  // prove: …     no assertion fails and nothing blocks, in any interleaving
  // limit: …     what is known not to hold: an assertion must fail
  // mutation: …  a planted defect: an assertion must fail
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import shards  # noqa: E402

LEAST_MUTATIONS = 2
MEMORY_MIB = 1024
MAX_DEPTH = 100000
RUN = re.compile(r"^// (prove|limit|mutation):([A-Z_ ]*)$", re.MULTILINE)
CONDITION = re.compile(r"^#(?:ifdef|ifndef|if|elif)\s+(.*)$", re.MULTILINE)


def runs_of(text):
    """(kind, macros) of each run that a model asks for."""
    return [(kind, macros.split()) for kind, macros in RUN.findall(text)]


def complaints_of_text(text):
    """What is wrong with a model before anything is run."""
    runs = runs_of(text)
    if not any(kind == "prove" for kind, _ in runs):
        yield "nothing is proved"
    if sum(kind == "mutation" for kind, _ in runs) < LEAST_MUTATIONS:
        yield "fewer than %d mutations" % LEAST_MUTATIONS
    named = {macro for _, macros in runs for macro in macros}
    asked = set(re.findall(r"\b[A-Z][A-Z_]+\b", " ".join(CONDITION.findall(text))))
    for macro in sorted(named ^ asked):
        yield "%s is %s" % (macro, "defined but never asked" if macro in named else "never defined")


def search(model, kind, macros, folder):
    """What Spin's search prints; the trail of an error follows it."""
    defines = ["-D" + macro for macro in macros]
    subprocess.run(["spin", "-a", *defines, model], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    # A search that ends at the first error is short.
    optimization = "-O1" if kind == "prove" else "-O0"
    subprocess.run(["gcc", optimization, "-w", "-DSAFETY", "-DMEMLIM=%d" % MEMORY_MIB,
                    "-o", "pan", "pan.c"], cwd=folder, check=True)
    # A defect must break an assertion; that something blocks is not enough.
    options = [] if kind == "prove" else ["-E"]
    output = subprocess.run(["./pan", "-n", "-m%d" % MAX_DEPTH, *options], cwd=folder,
                            stdout=subprocess.PIPE, universal_newlines=True, check=False).stdout
    trail = os.path.join(folder, os.path.basename(model) + ".trail")
    if kind == "prove" and os.path.exists(trail):
        output += subprocess.run(["spin", "-p", "-g", "-k", trail, *defines, model], cwd=folder,
                                 stdout=subprocess.PIPE, universal_newlines=True, check=False).stdout
    return output


def verdict(kind, output):
    """What is wrong with a run; None: nothing."""
    if "max search depth too small" in output or "out of memory" in output:
        return "the search was not exhaustive"
    errors = re.search(r"errors: (\d+)", output)
    if not errors:
        return "no result"
    if kind == "prove":
        return None if errors.group(1) == "0" else "an interleaving fails"
    return None if "assertion violated" in output else "no assertion fails, though one must"


def check(models):
    """The number of failures."""
    failures = 0
    runs = []
    for model in models:
        with open(model, encoding="utf-8") as file:
            text = file.read()
        for complaint in complaints_of_text(text):
            print("%s: %s" % (model, complaint))
            failures += 1
        runs += [(kind, model, macros) for kind, macros in runs_of(text)]
    # What proves is long, so these runs are dealt out first.
    for kind, model, macros in shards.share(sorted(runs, key=lambda run: run[0] != "prove")):
        with tempfile.TemporaryDirectory() as folder:
            output = search(os.path.abspath(model), kind, macros, folder)
        wrong = verdict(kind, output)
        states = re.search(r"(\d+) states, stored", output)
        print("%-18s %-9s %-40s %10s states  %s" % (
            os.path.basename(model), kind, " ".join(macros), states.group(1) if states else "?",
            wrong or "ok"))
        if wrong:
            print(output)
            failures += 1
    return failures


def main():
    models = sys.argv[1:]
    if not models:
        sys.exit(__doc__)
    sys.exit(1 if check(models) else 0)


if __name__ == "__main__":
    main()
