"""Texts and data in CPython: data.py ROUNDS. Prints a line per round."""
import ast
import csv
import hashlib
import io
import json
import pickle
import re
import sys


def records(seed, count):
    for i in range(count):
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        yield {
            "id": i,
            "name": "name-%x" % seed,
            "scores": [seed % (k + 2) / 7 for k in range(seed % 9)],
            "tags": {"t%d" % (seed % 50): "x" * (seed % 70), "even": seed % 2 == 0, "none": None},
        }


def digest(text):
    return hashlib.sha256(text if isinstance(text, bytes) else text.encode()).hexdigest()[:16]


def source_text(count):
    return "\n".join(
        "def f%d(a, b=%d):\n    '''does %d'''\n    return [a * x + b for x in range(%d) if x %% 3] or {a: (b, %d)}\n"
        % (i, i, i, i % 50, i) for i in range(count))


def main():
    for seed in range(1, int(sys.argv[1]) + 1):
        items = list(records(seed, 6000))
        text = json.dumps(items, indent=1)
        again = json.loads(text)
        table = io.StringIO()
        writer = csv.writer(table)
        for item in again:
            writer.writerow([item["id"], item["name"], *item["scores"]])
        rows = list(csv.reader(io.StringIO(table.getvalue())))
        frozen = pickle.dumps(again)
        thawed = pickle.loads(frozen)
        names = re.sub(r"name-([0-9a-f])(\w+)", r"\2-\1", text)
        tree = ast.dump(ast.parse(source_text(400)))
        code = compile(source_text(300), "generated", "exec")
        print(digest(text), len(rows), digest(repr(thawed[-1])), digest(names), digest(tree), len(code.co_names))


if __name__ == "__main__":
    main()
