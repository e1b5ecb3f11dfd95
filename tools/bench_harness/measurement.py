"""One measurement, from what was asked for to the content of results.json."""
import contextlib
import datetime
import os
import pathlib
import shutil
import sys
import tempfile

import build
import counters
import field
import machine
import peers
import results
import session
import simulated
import suite
import summary
import terminal
from errors import BadUsage

OLDER = "baseline"
STOPPED = 130  # as a shell has it for who was interrupted


def say(sentence):
    print("bench: %s" % sentence, file=sys.stderr, flush=True)


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def suite_of(arguments):
    """All programs of the suite that was asked for."""
    if arguments.mimalloc_bench:
        return field.load(arguments.mimalloc_bench)
    return suite.load(arguments.suite or build.ROOT / "benchmarks/suite")


def programs_of(arguments):
    return suite.select(suite_of(arguments), arguments.program, arguments.quick)


def _older(against, quick):
    """The peer `baseline`, or None. Built last, so that what is wrong else is said at once."""
    if against is None and quick:
        against, why = build.older_revision()
        say(why)
    if against is None:
        return None
    if os.path.isfile(against):
        return peers.Peer(OLDER, os.path.abspath(against), hakmem=True)
    if "/" in against and against.endswith(".so"):
        raise BadUsage("there is no library %s" % against)
    say("building revision %s" % against)
    commit, library = build.library_at(against)
    return peers.identify(peers.Peer(OLDER, str(library), hakmem=True), version="hakmem at %s" % commit[:12])


def _hakmem(variant, folder, revision, dirty):
    peer = peers.Peer(peers.variant_peer(variant), str(folder / "allocator" / build.library_name(variant)),
                      hakmem=True)
    peers.identify(peer)
    if revision:
        peer.version += " at %s%s" % (revision[:12], ", with changes" if dirty else "")
    return peer


def _copy(peer, folder):
    """A copy to preload: building anew must not change what is measured, and
    LD_PRELOAD is a list, separated by spaces and colons."""
    if peer.path and (peer.hakmem or " " in peer.path or ":" in peer.path):
        target = folder / "libraries" / peer.name / pathlib.Path(peer.path).name.replace(" ", "_").replace(":", "_")
        target.parent.mkdir(parents=True)
        peer.loaded = shutil.copyfile(peer.path, target)
        peer.loaded = str(target)
    return peer


@contextlib.contextmanager
def _pinned(wanted):
    allowed = os.sched_getaffinity(0)
    if wanted and not set(wanted) <= allowed:
        raise BadUsage("--pin: there is no processor %s here; there are %s" % (
            ", ".join(map(str, sorted(set(wanted) - allowed))), ", ".join(map(str, sorted(allowed)))))
    if wanted:
        os.sched_setaffinity(0, wanted)
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


@contextlib.contextmanager
def _scratch():
    with tempfile.TemporaryDirectory(prefix="hakmem_bench.", ignore_cleanup_errors=True) as folder:
        # Servers that refuse to run as root need to get in as somebody else.
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


def _described(program, runs):
    return {"name": program.name, "title": program.title, "about": program.about, "group": program.group,
            "threads": program.threads, "family": program.family,
            "metric": summary.metric_of(program, runs), "command": list(program.command)}


def _settings(arguments, baseline, repeats):
    whole = "mimalloc-bench" if arguments.mimalloc_bench else "full"
    settings = {"repeats": repeats, "warmups": arguments.warmups, "pin": arguments.pin, "baseline": baseline,
                "set": "custom" if arguments.program else "quick" if arguments.quick else whole,
                # As who uses that suite takes it; of ours some groups have many more programs than others.
                "mean": "programs" if arguments.mimalloc_bench else "groups",
                "seed": arguments.seed, "confidence": summary.CONFIDENCE}
    if arguments.mimalloc_bench:
        settings["checkout"] = field.revision(arguments.mimalloc_bench)
    return settings


def _placeholders(arguments, folder):
    """What commands of the suite can name, beside the program's own folder."""
    cpus = len(arguments.pin) if arguments.pin else len(os.sched_getaffinity(0))
    found = {"bench": folder / "benchmarks", "micro": folder / "benchmarks/micro",
             "replay": folder / "benchmarks/traces", "traces": build.ROOT / "benchmarks/traces",
             "programs": build.ROOT / "benchmarks/programs", "cpus": cpus}
    return {**found, **field.placeholders(arguments.mimalloc_bench, cpus)} if arguments.mimalloc_bench else found


def _peers(arguments, chosen, folder):
    """All that take part, built: the older hakmem first, hakmem last."""
    revision, dirty = build.revision(), build.is_dirty()
    older = _older(arguments.against, arguments.quick)
    hakmem = [_hakmem(variant, folder, revision, dirty) for variant in chosen.variants]
    return [*([older] if older else []), *chosen.peers.values(), *hakmem], revision, dirty


def _same_library(taking_part):
    older = next((peer for peer in taking_part if peer.name == OLDER), None)
    new = next((peer for peer in taking_part if peer.name == "hakmem"), None)
    if older and new and older.sha256 == new.sha256:
        return ["hakmem and the older one are the same library, byte for byte: the allocator did not change"]
    return []


def measure(arguments, command):
    """The content of results.json."""
    load_before = machine.load()
    programs = programs_of(arguments)
    chosen = peers.choose(arguments.peer, arguments.variant, arguments.quick)
    with _pinned(arguments.pin), _scratch() as scratch:
        for sentence in chosen.missing:
            say(sentence)
        say("building")
        folder = build.build_here(chosen.variants)
        taking_part, revision, dirty = _peers(arguments, chosen, folder)
        for peer in taking_part:
            _copy(peer, scratch)
            if not peer.version:
                peers.identify(peer)
        taking_part = peers.with_settings(taking_part, arguments.variant_of)
        baseline = peers.choose_baseline(arguments.baseline, [peer.name for peer in taking_part])
        tools = session.Tools(folder / "tools/measure/measure", folder / "tools/measure/libwitness.so")
        noise = machine.Noise(folder / "tools/measure/calibrate", load_before)
        content = _run(arguments, programs, taking_part, baseline, _placeholders(arguments, folder), scratch, tools,
                       noise)
    content.update(command=list(command), source={"revision": revision, "dirty": dirty})
    content["machine"]["remarks"] += _same_library(taking_part)
    return content


def repeats_of(arguments):
    return arguments.repeats or (7 if arguments.quick else 5)


def _run(arguments, programs, taking_part, baseline, placeholders, scratch, tools, noise):
    repeats = repeats_of(arguments)
    simulate = len(simulated.PASSES) if arguments.simulate else 0
    counted = not arguments.quick and not simulate and counters.are_here(tools.measure, scratch)
    rounds = repeats + arguments.warmups + counted + arguments.system_calls + simulate
    say("%d programs on %s, %d rounds" % (len(programs), ", ".join(peer.name for peer in taking_part), rounds))
    started = now()
    with terminal.RunProgress(terminal.console(stderr=True), rounds * len(programs) * len(taking_part)) as progress:
        run = session.Session(tools, programs, taking_part, placeholders, scratch, noise, progress)
        runs = run.run(repeats, arguments.warmups, arguments.system_calls, counted, simulate)
    watched = noise.verdict()
    watched["remarks"] += run.remarks
    described = [_described(program, runs) for program in programs]
    settings = _settings(arguments, baseline, run.repeats)
    return {"schema": results.SCHEMA_NAME, "version": results.VERSION, "started": started, "finished": now(),
            "command": [], "machine": dict(machine.describe(), **watched), "source": {},
            "settings": settings,
            "peers": [peer.described() for peer in taking_part], "programs": described, "runs": runs,
            "summary": summary.summarise(described, [peer.name for peer in taking_part], runs, baseline,
                                         arguments.seed, settings["mean"] == "groups")}


def stopped(arguments, content):
    """Whether somebody ended it early."""
    return content["settings"]["repeats"] < repeats_of(arguments)


def failed(content):
    """Whether something went wrong; a program whose needs are not installed did not."""
    return any(failure["status"] != "skipped" for failure in content["summary"]["failures"])
