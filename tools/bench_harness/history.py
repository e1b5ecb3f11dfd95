"""What nightly measurements found, one line of JSON each: DIR/history.json."""
import json
import sys

NIGHTS = 30
_KEYS = {"started": str, "revision": (str, type(None)), "set": str, "good": bool, "results": str, "peers": dict}


def entry(results, good, path, accepted=False):
    """The compact form of one measurement; `path` of its results.json, relative to the history."""
    peers = {}
    for peer in results["summary"]["peers"]:
        time = peer["time_ratio"]
        peers[peer["peer"]] = {"time_ratio": time["value"] if time else None, "rss_ratio": peer["rss_ratio"]}
    return {"started": results["started"], "revision": results["source"]["revision"],
            "set": results["settings"]["set"], "good": good, "accepted": accepted, "results": path, "peers": peers}


def _parse(line):
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("no object")
    for key, kind in _KEYS.items():
        if not isinstance(found.get(key), kind):
            raise ValueError("%s is missing or wrong" % key)
    for name, ratios in found["peers"].items():
        if not isinstance(ratios, dict) or not all(
                isinstance(ratios.get(key), (int, float, type(None))) for key in ("time_ratio", "rss_ratio")):
            raise ValueError("the figures of %s are wrong" % name)
    return found


def read(path):
    """The entries, oldest first. A damaged line is named and left out: the others still count."""
    try:
        lines = path.read_bytes().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return []
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entries.append(_parse(line))
        except ValueError as error:
            print("bench: %s, line %d is damaged and left out: %s" % (path, number, error), file=sys.stderr)
    return sorted(entries, key=lambda each: each["started"])


def append(path, new):
    """Adds a line, on a line of its own even after one that was cut off."""
    whole = not path.exists() or path.stat().st_size == 0 or path.read_bytes().endswith(b"\n")
    with open(path, "a", encoding="utf-8") as file:
        file.write(("" if whole else "\n") + json.dumps(new) + "\n")


def references(entries, of_set):
    """The latest good entry of the same set, and the oldest of the last NIGHTS: many small steps are one large one.

    Good had neither failures nor regressions, and no noise. None is older than what was accepted last.
    """
    good = []
    for each in entries:
        if each["good"] and each["set"] == of_set:
            good = [each] if each.get("accepted") else [*good, each]
    return good[-1:] + good[-NIGHTS:][:1] if len(good) > 1 else good
