"""What the trace must say of each case of provoke."""
import dataclasses

import failure_trace

MIB = 1 << 20
GIB = 1 << 30

# Tiny, Pool, Span and Huge.
ROUTE_SIZES = (48, 5000, MIB, 300 * MIB)
# No real kernel brings these about: (name, reason, detail). hakmem's tables are
# as large as the address space that it uses.
ONLY_FAKE = (("metadata", "Exhaustion", "metadata"),)
# A fake kernel does not kill.
ONLY_REAL = ("cgroup_kill",)

# The variants in which what one class has freed stays its own.
SEPARATE = ("hardened", "debug")


@dataclasses.dataclass
class Expected:
    # The name of the limit that the event must give; None: it gives none.
    limit: str = None
    # Its value; None: any.
    value: int = None
    # What the events of calls that ended well must say.
    served: tuple = ()
    # Sizes to run it with; 0: the case's own.
    sizes: tuple = (0,)
    # The errno of the refused call.
    errno: str = None


CASES = {
    "size": Expected("region"),
    "entry_points": Expected("region"),
    "alignment": Expected("region"),
    "overflow": Expected(),
    "max_alloc": Expected("HAKMEM_MAX_ALLOC", 2 * MIB),
    "heap_limit": Expected("HAKMEM_HEAP_LIMIT", 64 * MIB, sizes=ROUTE_SIZES),
    "region": Expected("region"),
    "rlimit_as": Expected("RLIMIT_AS", errno="ENOMEM", sizes=ROUTE_SIZES),
    "rlimit_data": Expected("RLIMIT_DATA", errno="ENOMEM", sizes=ROUTE_SIZES),
    "rlimit_memlock": Expected("RLIMIT_MEMLOCK", errno="EAGAIN", sizes=ROUTE_SIZES),
    "max_map_count": Expected("vm.max_map_count", errno="ENOMEM", sizes=ROUTE_SIZES),
    "address_in_use": Expected(errno="EEXIST"),
    "unknown": Expected(errno="ENOMEM"),
    "injected": Expected(errno="ENOMEM"),
    "injected_once": Expected(errno="ENOMEM", served=("served_after_purge",)),
    "cgroup": Expected("memory.max", 64 * MIB, errno="ENOMEM"),
    "cgroup_kill": Expected(),
    "metadata": Expected(),
    "overcommit": Expected("vm.overcommit_memory", errno="ENOMEM"),
    "storm": Expected("region"),
    "thread": Expected("region"),
    "fork": Expected("region"),
    "new_handler": Expected("HAKMEM_HEAP_LIMIT", 64 * MIB, served=("served_after_new_handler",)),
    "handler": Expected("HAKMEM_HEAP_LIMIT", 64 * MIB, served=("served_after_handler",)),
    "purge": Expected("HAKMEM_HEAP_LIMIT", 58 * MIB, served=("served_after_purge",)),
}


def sizes_of(case):
    return CASES[case.name].sizes


def mappings_complaints(limit):
    with open("/proc/sys/vm/max_map_count", encoding="ascii") as file:
        if limit["value"] != int(file.read()):
            yield "max_map_count is not %d" % limit["value"]
    # What reading the limits needs itself may have come and gone.
    if limit.get("use", 0) < limit["value"] - 8:
        yield "only %s mappings in use of %d" % (limit.get("use"), limit["value"])


def limit_complaints(event, expected, real):
    limit = event.get("limit")
    if expected.limit is None:
        if limit is not None:
            yield "names a limit: %s" % limit
        return
    if limit is None or limit["name"] != expected.limit:
        yield "the limit is %s, not %s" % (limit, expected.limit)
        return
    if expected.value is not None and limit["value"] != expected.value:
        yield "the limit's value is %d, not %d" % (limit["value"], expected.value)
    if limit["name"] == "vm.max_map_count" and real:
        yield from mappings_complaints(limit)
    # Of the region, what lies between blocks of 4 GiB is not counted.
    elif "use" in limit and limit["use"] + limit["needed"] <= limit["value"] * (
        1023 / 1024 if limit["name"] == "region" else 1
    ):
        yield "the limit leaves room for it: %s" % limit


def reason_complaints(event, case, real=True):
    expected = CASES[case.name]
    if event["reason"] != case.reason or event["detail"] != case.detail:
        yield "says %s/%s, not %s/%s" % (event["reason"], event["detail"], case.reason, case.detail)
    yield from limit_complaints(event, expected, real)
    refused = event.get("refused")
    if expected.errno is None and refused is not None:
        yield "a kernel call was refused: %s" % refused
    if expected.errno is not None and (refused or {}).get("error") != expected.errno:
        yield "refused by %s, not %s" % (refused, expected.errno)


def route_of(size):
    return "tiny" if size <= 1024 else "pool" if size <= 65536 else "span" if size <= 256 * MIB else "huge"


def call_complaints(event, call):
    """Whether the event is that of the failed call."""
    wanted = {
        "call": call["call"],
        "size": call["size"],
        "disposition": "threw" if call["result"] == "threw" else "returned_null",
    }
    # A reallocarray whose product fits is a realloc of that.
    if call["call"] == "calloc" or event["detail"] == "overflow" and call["call"] == "reallocarray":
        wanted["count"] = call["count"]
    for name, value in wanted.items():
        if event.get(name) != value:
            yield "%s is %r, not %r" % (name, event.get(name), value)
    if "count" not in wanted and "count" in event:
        yield "a count of a call without one"
    # What does not fit into size_t has no size to choose a route by.
    most = max(call["size"] * call["count"], call["alignment"])
    if event["detail"] != "overflow" and event["route"] != route_of(most):
        yield "route %s for %d bytes" % (event["route"], most)


def memory_complaints(event):
    memory = event["memory"]
    if memory["peak_mapped"] < memory["mapped"]:
        yield "mapped more than its peak: %s" % memory
    if memory["granted"] + memory["cached"] > memory["mapped"]:
        yield "granted and cached exceed mapped: %s" % memory
    # Counted before the refusal that the rest is from: a handler may have freed some by then.
    if memory.get("live", 0) > memory["peak_mapped"]:
        yield "more is live than was ever mapped: %s" % memory


def failed_complaints(run, case):
    """Exactly one event for each failed call, in their order."""
    events = [event for event in run.events if event["disposition"] in failure_trace.GIVEN_UP]
    if len(events) != run.summary["failed"]:
        yield "%d calls failed, %d events" % (run.summary["failed"], len(events))
        return
    for event, call in zip(events, run.failed):
        for text in list(call_complaints(event, call)) + list(reason_complaints(event, case)):
            yield "event %d: %s" % (event["sequence"], text)


def evidence_complaints(run, case):
    """What was read of the limits is there, and has the one that explains."""
    expected = CASES[case.name]
    if case.reason != "MapFail" or case.detail in ("address_in_use", "injected"):
        return
    names = set(limit["name"] for event in run.events for limit in event.get("limits", ()))
    if "vm.max_map_count" not in names or (expected.limit or "vm.max_map_count") not in names:
        yield "the limits that were read are only %s" % sorted(names)


def stack_complaints(run):
    """The innermost address is of the program that made the call."""
    for event in run.events:
        inner = event["stack"][0] if event["stack"] else {}
        if "module" not in inner or not event["modules"][inner["module"]]["path"].endswith("/provoke"):
            yield "the innermost frame is %s" % inner
        if event["program"] != "provoke":
            yield "the program is %s" % event["program"]


def served_complaints(run, case):
    expected = CASES[case.name]
    events = [event for event in run.events if event["disposition"] not in failure_trace.GIVEN_UP]
    # The tracing variant also tells of each detour that ended well.
    told = [event for event in events if event["disposition"] != "served_by_detour"]
    served = tuple(event["disposition"] for event in told)
    # A purge may give a last few blocks, before there are none.
    last_few = len(expected.sizes) > 1 and set(served) == {"served_after_purge"}
    # There other calls than one for blocks may be the one that is refused.
    elsewhere = case.name == "injected_once" and run.separates_classes and not served
    if served != expected.served and not last_few and not elsewhere:
        yield "served after all: %s, expected %s" % (served, expected.served)
    for event in told:
        yield from reason_complaints(event, case)
        if event["attempts"] < 2:
            yield "served after %d attempt" % event["attempts"]
    detours = [event for event in events if event not in told]
    if detours and detours[0]["variant"] not in ("tracing", "debug"):
        yield "a detour in the %s variant" % detours[0]["variant"]


def storm_complaints(run):
    """Lines are dropped, and counted."""
    end = run.traces[0].of("end")[0]
    if end["failures"] != run.summary["failed"] or not 0 < end["dropped"] < end["failures"]:
        yield "10,000 failures end in %s" % end


def thread_complaints(run):
    event = run.events[0]
    if event["thread"] != "provoker" or event["tid"] == event["pid"]:
        yield "the thread is %s, %d of %d" % (event["thread"], event["tid"], event["pid"])


def fork_complaints(run):
    counts = sorted([event["sequence"] for event in trace.failures] for trace in run.traces)
    if counts != [[1], [1, 2]]:
        yield "events per process: %s" % counts


def killed_complaints(run):
    """The kernel leaves no time to say anything; only the parent's trace ends."""
    ends = [trace.ended for trace in run.traces]
    if sorted(ends) not in ([True], [False, True]):
        yield "traces that end: %s" % ends


OWN_CHECKS = {
    "storm": storm_complaints,
    "thread": thread_complaints,
    "fork": fork_complaints,
    "cgroup_kill": killed_complaints,
}


def complaints(run, case):
    if case.name == "storm":
        yield from storm_complaints(run)
        return
    if case.name == "fork":
        run.failed.sort(key=lambda call: call["call"] == "operator new(nothrow)")
    yield from failed_complaints(run, case)
    yield from served_complaints(run, case)
    yield from evidence_complaints(run, case)
    yield from stack_complaints(run)
    for event in run.events:
        yield from memory_complaints(event)
    if case.name in OWN_CHECKS:
        yield from OWN_CHECKS[case.name](run)


def fake_complaints(events, case):
    failures = [event for event in events if event["event"] == "failure"]
    if len(failures) != 1:
        yield "%d events for one failed call" % len(failures)
    for event in failures:
        yield from reason_complaints(event, case, real=False)
        yield from memory_complaints(event)
