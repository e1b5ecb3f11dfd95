"""The command line of tools/bench."""
import argparse
import pathlib
import re

from errors import BadUsage

_EPILOG = """\
other commands:
  tools/bench compare A.json B.json   what changed beyond noise, for CI
  tools/bench report RESULTS.json     makes the page again
  tools/bench markdown RESULTS.json   prints tables for a document
  tools/bench csv RESULTS.json        prints every single run, for a spreadsheet
  tools/bench protection RESULTS.json  prints time beside the attacks that are stopped
  tools/bench nightly --out DIR       everything, with a history of past nights
  (each with --help)

examples:
  tools/bench --quick                      did my change help? (under 5 minutes)
  tools/bench                              everything (an hour or more)
  tools/bench --program larson --peer mimalloc --repeats 9
  tools/bench --program brief              programs of 20 to 100 ms: processor time, page faults
  tools/bench --program micro              Google Benchmark: one path each, by size
  tools/bench --program brief_perl --simulate   why: instructions, and misses of caches and TLB
  tools/bench --against v1.0               ratios to an older hakmem
  tools/bench --peer mine=/path/libmine.so your allocator among the others
  tools/bench --mimalloc-bench ../mimalloc-bench   the field's suite

exit status: 0 all ran; 1 something failed, crashed, timed out or did not load
its allocator (named at the end; the rest was measured); 2 bad usage; 130 stopped
by Ctrl-C (whole repeats are kept).

Verdicts: faster or slower if the 95 % interval of the ratio excludes 1 and the
effect is above 1 %; same if it is within 2 %; else can't tell. They need five
repeats.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        raise BadUsage("%s (tools/bench --help explains)" % message)


def _number(least):
    def parse(text):
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or number < least:
            raise argparse.ArgumentTypeError("%s is not a whole number from %d on" % (text, least))
        return number
    return parse


def processors(text):
    """The set that 0,2-3 means."""
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()) or part.endswith("-"):
            raise argparse.ArgumentTypeError("%s is not a list of processors such as 0,2-3" % text)
        found.update(range(int(first), int(last or first) + 1))
    if not found:
        raise argparse.ArgumentTypeError("%s names no processor" % text)
    return sorted(found)


def _bound(text):
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1000:
        raise argparse.ArgumentTypeError("%s is not a percentage" % text)
    return number / 100


def _variant_of(text):
    """As peers.with_settings reads it."""
    if not re.fullmatch(r"[^:]+:[A-Za-z_]\w*=[^,]*(,[A-Za-z_]\w*=[^,]*)*", text):
        raise argparse.ArgumentTypeError("%s is not NAME:OPTION=VALUE,OPTION=VALUE" % text)
    return text


def _add_choice(parser, variants):
    group = parser.add_argument_group("what is measured")
    group.add_argument("--quick", action="store_true",
                       help="the short programs only, hakmem against an older hakmem only: the "
                       "committed one if the allocator was changed, else the one before its last change")
    group.add_argument("--program", action="append", default=[], metavar="TEXT",
                       help="programs whose name or title contains TEXT; may be repeated")
    group.add_argument("--peer", action="append", default=[], metavar="NAME[=PATH]",
                       help="NAME: of the other allocators found here, only these; NAME=PATH: one more, "
                       "from a library. hakmem always takes part. May be repeated")
    group.add_argument("--variant", action="append", default=[], choices=variants,
                       help="which hakmem: %s (default: release); may be repeated" % ", ".join(variants))
    group.add_argument("--variant-of", action="append", default=[], type=_variant_of, metavar="NAME:OPTION=VALUE[,…]",
                       help="one that takes part once more, with these in its environment: "
                       "hakmem:HAKMEM_HUGE_PAGES=on. May be repeated")
    group.add_argument("--baseline", metavar="NAME",
                       help="what ratios are relative to (default: the older hakmem if there is one, "
                       "else mimalloc, else glibc)")
    group.add_argument("--against", metavar="REVISION_OR_LIBRARY",
                       help="an older hakmem, called `baseline`: a git revision, which is built, or a "
                       "library")
    suites = group.add_mutually_exclusive_group()
    suites.add_argument("--suite", type=pathlib.Path, metavar="DIR",
                        help="programs from DIR/*.toml instead of benchmarks/suite")
    suites.add_argument("--mimalloc-bench", type=pathlib.Path, metavar="DIR",
                        help="the programs of the field's own suite instead: DIR is a checkout of it in which "
                        "./build-bench-env.sh has built them; what is not built is left out, by name")
    group.add_argument("--list", action="store_true", help="say which programs and allocators there are")


def _add_manner(parser):
    group = parser.add_argument_group("how it is measured")
    group.add_argument("--repeats", type=_number(1), metavar="N",
                       help="measured runs of each program on each allocator (default: 5; 7 with --quick)")
    group.add_argument("--warmups", type=_number(1), default=1, metavar="N",
                       help="runs before those, in which it is also proved that the program takes its "
                       "malloc from the allocator (default: 1)")
    group.add_argument("--pin", type=processors, metavar="CPUS", help="run on these processors, such as 0,2-3")
    group.add_argument("--seed", type=_number(0), default=1, metavar="N",
                       help="of the statistics' random numbers (default: 1)")
    group.add_argument("--system-calls", action="store_true",
                       help="one more run of each under strace, which counts system calls by name")
    group.add_argument("--simulate", action="store_true",
                       help="two more runs of each under valgrind's cachegrind, which counts instructions, wrongly "
                       "predicted branches, and misses of caches and TLB where the processor has no counters. Each "
                       "takes a hundred times as long: name a few programs")


def run_parser(variants):
    parser = _Parser(
        prog="tools/bench", epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures hakmem and the other allocators on this machine, side by side: time,\n"
        "memory, page faults, the kernel's share. Installs and builds what it needs.")
    _add_choice(parser, variants)
    _add_manner(parser)
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR",
                        help="where results.json and report.html go (default: a new folder in "
                        "bench-results, which git ignores; bench-results/latest leads to it)")
    parser.add_argument("--csv", action="store_true", help="write results.csv, a row for each single run, and "
                        "means.csv, the means by group, as well")
    return parser


def csv_parser():
    parser = _Parser(prog="tools/bench csv", description="Prints every run of a results.json, comma-separated.")
    parser.add_argument("results", metavar="RESULTS.json", type=pathlib.Path)
    parser.add_argument("--means", action="store_true", help="the means by group of programs instead")
    return parser


def nightly_parser(variants):
    parser = _Parser(
        prog="tools/bench nightly", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Measures everything, writes DIR/DATE and DIR/latest, appends to DIR/history.json and\n"
        "compares hakmem with the last good run there, and with an older one.\n"
        "Exit status: 0 good; 1 a failure or a regression; 2 bad usage; 130 stopped (whole repeats are kept,\n"
        "but later runs are not compared with them).")
    _add_choice(parser, variants)
    _add_manner(parser)
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", required=True,
                        help="the folder of the history; made if it is not there")
    _add_bound(parser)
    parser.add_argument("--accept", action="store_true",
                        help="a regression is meant: this run is what later ones are compared with")
    return parser


def _add_bound(parser):
    parser.add_argument("--bound", type=_bound, default=0.05, metavar="PERCENT",
                        help="a regression is more than this (default: 5)")


def compare_parser():
    parser = _Parser(
        prog="tools/bench compare",
        description="What changed beyond noise from A to B, by program, in time and peak memory. Exit "
        "status: 0 no regression; 1 a regression above the bound; 2 the files cannot be compared.")
    parser.add_argument("before", metavar="A.json")
    parser.add_argument("after", metavar="B.json")
    _add_bound(parser)
    parser.add_argument("--peer", default="hakmem", metavar="NAME", help="of which allocator (default: hakmem)")
    parser.add_argument("--absolute", action="store_true",
                        help="compare times as they are; by default they are divided by those of the "
                        "baseline if that is the same library in both files, as a machine has moods")
    return parser


def report_parser():
    parser = _Parser(prog="tools/bench report", description="Writes the page of a results.json.")
    parser.add_argument("results", metavar="RESULTS.json", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE", help="default: report.html beside it")
    return parser


def markdown_parser():
    parser = _Parser(prog="tools/bench markdown", description="Prints a results.json as Markdown tables.")
    parser.add_argument("results", metavar="RESULTS.json", type=pathlib.Path)
    return parser


def protection_parser():
    parser = _Parser(
        prog="tools/bench protection",
        description="Prints what allocators take beside what docs/attacks.md says that they stop, as a Markdown "
        "table. Peers that are called as in its table of attacks take part.")
    parser.add_argument("results", metavar="RESULTS.json", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE.svg", help="draws it as a picture, too")
    return parser


if __name__ == "__main__":
    # For who has none of the packages that the commands need.
    run_parser(("release", "tracing", "hardened", "debug")).parse_args()
