"""results.json: read, checked and written. results.schema.json explains it."""
import contextlib
import json
import pathlib

import jsonschema

from errors import BadUsage

SCHEMA_NAME = "hakmem-bench-results"
VERSION = 1
_SCHEMA = pathlib.Path(__file__).with_name("results.schema.json")


def make_folder(folder, files):
    """Made before anything is measured, so that an hour is not lost to a wrong name; `files` go there."""
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise BadUsage("cannot write to %s: %s" % (folder, error.strerror)) from error
    for name in files:
        try:
            with contextlib.suppress(FileNotFoundError), open(folder / name, "r+b"):
                pass
        except OSError as error:
            raise BadUsage("cannot write %s: %s" % (folder / name, error.strerror)) from error
    return folder


def schema():
    return json.loads(_SCHEMA.read_text())


def check(content):
    """Raises jsonschema.ValidationError for what the schema does not allow."""
    jsonschema.validate(content, schema())


def write(content, path):
    """Writes what is valid, and never half of it."""
    check(content)
    partial = path.with_name(path.name + ".part")
    partial.write_text(json.dumps(content, indent=1) + "\n")
    partial.replace(path)


def read(path):
    path = pathlib.Path(path)
    try:
        content = json.loads(path.read_text())
    except OSError as error:
        raise BadUsage("%s cannot be read: %s" % (path, error.strerror)) from error
    except ValueError as error:
        raise BadUsage("%s is not JSON: %s" % (path, error)) from error
    if not isinstance(content, dict) or content.get("schema") != SCHEMA_NAME:
        raise BadUsage("%s is no results.json of tools/bench" % path)
    if content.get("version") != VERSION:
        raise BadUsage("%s has version %s of the schema; this tools/bench reads version %d" % (
            path, content.get("version"), VERSION))
    try:
        check(content)
    except jsonschema.ValidationError as error:
        raise BadUsage("%s is damaged: at %s: %s" % (
            path, "/".join(map(str, error.absolute_path)) or "the top", error.message[:200])) from error
    return content
