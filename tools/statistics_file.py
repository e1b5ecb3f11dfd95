"""Reads what processes wrote to HAKMEM_STATS: one JSON object a line."""
import json
import pathlib

ROUTES = ("tiny", "pool", "span", "huge")


class BadStatistics(Exception):
    pass


def whole(line):
    """The line's last object: before it may stand what a process wrote that was killed meanwhile."""
    begin = line.rfind('{"pid":')
    return line[begin:] if begin > 0 else line


def read(path):
    """The objects in the file, in the order they were written."""
    path = pathlib.Path(path)
    if not path.exists():
        return []
    records = []
    text = path.read_text(encoding="utf-8", errors="backslashreplace")
    # What has no newline was never finished.
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            record = json.loads(whole(line))
            if not isinstance(record["program"], str):
                raise KeyError("program")
            for route in ROUTES:
                for key in ("allocations", "bytes"):
                    int(record["routes"][route][key])
        except (ValueError, KeyError, TypeError) as error:
            raise BadStatistics(
                "line %d of %s is not hakmem's statistics (%s): %s"
                % (number, path, error, line[:200])) from error
        records.append(record)
    return records


def allocations(record):
    """Calls served, by all routes."""
    return sum(record["routes"][route]["allocations"] for route in ROUTES)
