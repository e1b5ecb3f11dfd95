"""What a results.json holds as comma-separated values, for spreadsheets."""
import csv
import io

_MEANS = ("peer", "group", "programs", "time", "time_low", "time_high", "memory")


def _flat(run, prefix=""):
    """The run's figures by name; those of a nested object after its name."""
    for key, value in run.items():
        if isinstance(value, dict):
            yield from _flat(value, prefix + key + ".")
        elif value is not None:
            yield prefix + key, value


def _written(columns, rows):
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def table(content):
    """Every single run, and the group of its program."""
    groups = {program["name"]: program["group"] for program in content["programs"]}
    rows = [{"group": groups[run["program"]], **dict(_flat(run))} for run in content["runs"]]
    return _written(dict.fromkeys(name for row in rows for name in row), rows)


def means(content):
    """The geometric means of each peer against the baseline: of each group, then over all."""
    rows = []
    for peer in content["summary"]["peers"]:
        for mean in [*peer.get("groups", ()), {**peer, "group": "all"}]:
            time = mean["time_ratio"] or dict.fromkeys(("value", "low", "high"))
            rows.append({"peer": peer["peer"], "group": mean["group"], "programs": mean["programs"],
                         "time": time["value"], "time_low": time["low"], "time_high": time["high"],
                         "memory": mean["rss_ratio"]})
    return _written(_MEANS, rows)
