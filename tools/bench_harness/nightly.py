"""tools/bench nightly: one measurement into a folder with a history.

DIR/history.json   a line for each night
DIR/DATE/          results.json and report.html of that night
DIR/latest         leads to the last one
"""
import os
import pathlib

import compare
import history
import measurement
import results
import summary
import terminal
from errors import BadUsage


def folder_of(out):
    """Relative to where the user is; `bazel run` changes that and says what it was."""
    return (pathlib.Path(os.environ.get("BUILD_WORKING_DIRECTORY", ".")) / out).absolute()


def lead(latest, target):
    """Makes the link `latest` lead to `target` beside it, at once."""
    if latest.exists() and not latest.is_symlink():
        raise BadUsage("%s is in the way: it should be a link to the latest results" % latest)
    partial = latest.with_name(latest.name + ".part")
    partial.unlink(missing_ok=True)
    partial.symlink_to(target)
    partial.replace(latest)


def _compared(content, entries, folder, bound, out):
    """Whether hakmem got no worse than on the last good night, nor over many nights."""
    references = history.references(entries, content["settings"]["set"])
    if not references:
        out.print("There is no good run of this set before, so nothing to compare with.")
    # Each says what it finds.
    return all([_compared_with(last, content, folder, bound, out) for last in references])


def _compared_with(last, content, folder, bound, out):
    try:
        before = results.read(folder / last["results"])
        peer = next(each["name"] for each in content["peers"] if each["name"].startswith("hakmem"))
        changes, remarks = compare.compare(before, content, peer, bound)
    except BadUsage as error:
        # Who says so takes this night as the one that others are compared with.
        out.print("Not compared with the good run of %s: %s; --accept goes on from this one." % (last["started"], error),
                  style="red", markup=False)
        return False
    out.print("\nSince the good run of %s:" % last["started"])
    return compare.show(changes, remarks, peer, bound, out) == 0


def store(content, folder, bound, accept, whole, out):
    """Keeps the results, compares and appends; (exit status, entries oldest first).

    One that was not `whole` has too few repeats to be compared with.
    """
    path = folder / "history.json"
    entries = history.read(path)
    name = content["started"].replace(":", "")
    (folder / name).mkdir(parents=True, exist_ok=True)
    results.write(content, folder / name / "results.json")
    unchanged = _compared(content, entries, folder, bound, out) or accept
    good = unchanged and whole and not measurement.failed(content)
    calm = accept or not content["machine"]["noisy"]
    if good and not calm:
        out.print("The machine was noisy: later runs are not compared with this one.")
    new = history.entry(content, good and calm, "%s/results.json" % name, accept)
    history.append(path, new)
    return 0 if good else 1, [*entries, new]


def run(arguments, command, write_report):
    folder = results.make_folder(folder_of(arguments.out), ["history.json"])
    content = measurement.measure(arguments, command)
    out = terminal.console()
    terminal.show(content, out, summary.verdict, summary.MIN_REPEATS)
    whole = not measurement.stopped(arguments, content)
    status, entries = store(content, folder, arguments.bound, arguments.accept, whole, out)
    name = pathlib.Path(entries[-1]["results"]).parent.name
    write_report(content, folder / name / "report.html", entries)
    lead(folder / "latest", name)
    out.print("\n%s has results.json and report.html." % (folder / "latest"))
    return status if whole else measurement.STOPPED
