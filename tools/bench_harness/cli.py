"""tools/bench, which see."""
import os
import signal
import sys

import build
import compare
import csv_table
import measurement
import nightly
import options
import peers
import results
import summary
import terminal
from errors import BadUsage, BuildFailed, NotWritten


def _write_report(content, path, history=()):
    import report  # draws plots, and takes long to import
    report.write(content, path, history)


def _list(arguments):
    found, missing = peers.discover()
    out = terminal.console()
    out.print("Programs (* is part of --quick):")
    for program in measurement.suite_of(arguments):
        out.print(" %s %-28s %s: %s" % ("*" if program.quick else " ", program.name, program.group, program.about),
                  markup=False, soft_wrap=True)
    out.print("\nAllocators:")
    for name, peer in found.items():
        out.print("   %-28s %s" % (name, peer.path or "the C library's own"), markup=False, soft_wrap=True)
    for name in peers.VARIANT_OF:
        out.print("   %-28s built from this repository" % name, markup=False)
    for sentence in missing:
        out.print("   %s" % sentence, markup=False)
    return 0


def _write(content, folder, files):
    makers = {"results.json": lambda path: results.write(content, path),
              "report.html": lambda path: _write_report(content, path),
              "results.csv": lambda path: path.write_text(csv_table.table(content)),
              "means.csv": lambda path: path.write_text(csv_table.means(content))}
    for name in files:
        try:
            makers[name](folder / name)
        except OSError as error:
            raise NotWritten("cannot write %s: %s" % (folder / name, error.strerror)) from error


def _run(argv, command):
    arguments = options.run_parser(build.VARIANTS).parse_args(argv)
    if arguments.list:
        return _list(arguments)
    measurement.programs_of(arguments)
    files = ["results.json", *(["results.csv", "means.csv"] if arguments.csv else []), "report.html"]
    folder = results.make_folder(
        arguments.out or build.ROOT / "bench-results" / measurement.now().replace(":", ""), files)
    try:
        content = measurement.measure(arguments, command)
    except BaseException:
        if arguments.out is None:
            folder.rmdir()
        raise
    _write(content, folder, files)
    if arguments.out is None:
        nightly.lead(folder.parent / "latest", folder.name)
    out = terminal.console()
    terminal.show(content, out, summary.verdict, summary.MIN_REPEATS)
    out.print("\n%s has %s and %s." % (folder, ", ".join(files[:-1]), files[-1]), soft_wrap=True)
    if measurement.stopped(arguments, content):
        return measurement.STOPPED
    return 1 if measurement.failed(content) else 0


def _compare(argv, _command):
    arguments = options.compare_parser().parse_args(argv)
    before, after = results.read(arguments.before), results.read(arguments.after)
    changes, remarks = compare.compare(before, after, arguments.peer, arguments.bound, arguments.absolute)
    return compare.show(changes, remarks, arguments.peer, arguments.bound, terminal.console())


def _report(argv, _command):
    arguments = options.report_parser().parse_args(argv)
    path = arguments.out or arguments.results.with_name("report.html")
    _write_report(results.read(arguments.results), path)
    print(path)
    return 0


def _markdown(argv, _command):
    arguments = options.markdown_parser().parse_args(argv)
    content = results.read(arguments.results)
    import markdown
    print(markdown.comparison(content))
    return 0


def _protection(argv, _command):
    arguments = options.protection_parser().parse_args(argv)
    content = results.read(arguments.results)
    import protection
    print(protection.show(content, arguments.out), end="")
    return 0


def _csv(argv, _command):
    arguments = options.csv_parser().parse_args(argv)
    content = results.read(arguments.results)
    try:
        print(csv_table.means(content) if arguments.means else csv_table.table(content), end="", flush=True)
    except OSError as error:
        # What is left in the buffer goes nowhere, so that Python does not complain of it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        # Who reads has enough, as in `tools/bench csv … | head`.
        if not isinstance(error, BrokenPipeError):
            raise NotWritten("cannot write the table: %s" % error.strerror) from error
    return 0


def _nightly(argv, command):
    return nightly.run(options.nightly_parser(build.VARIANTS).parse_args(argv), command, _write_report)


COMMANDS = {"compare": _compare, "report": _report, "markdown": _markdown, "csv": _csv,
            "protection": _protection, "nightly": _nightly}


def _stop(_number, _frame):
    raise KeyboardInterrupt


def main(argv):
    command = ["tools/bench", *argv]
    signal.signal(signal.SIGTERM, _stop)
    try:
        if argv and argv[0] in COMMANDS:
            return COMMANDS[argv[0]](argv[1:], command)
        return _run(argv, command)
    except BadUsage as error:
        print("bench: %s" % error, file=sys.stderr)
        return 2
    except (BuildFailed, NotWritten) as error:
        print("bench: %s" % error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: stopped before a repeat was whole; nothing was written", file=sys.stderr)
        return measurement.STOPPED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
