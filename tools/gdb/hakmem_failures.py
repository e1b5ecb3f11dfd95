"""Prints hakmem's failure ring: of a live process or of a core file.

    (gdb) source tools/gdb/hakmem_failures.py
    (gdb) hakmem-failures [COUNT]

Needs no debug information, only the symbol hakmem_failure_ring. The layout that
is read here is that of allocator/failures/failure_event.h (docs/process_tables.md).
"""
import datetime
import struct

import gdb

MAGIC = b"hakfail\0"
VERSION = 1
# magic, version, descriptor_bytes, capacity, slot_bytes, event_offset,
# event_bytes, recorded, slots, hakmem_version, variant
DESCRIPTOR = struct.Struct("<8s6I4Q")
# Up to `frames`; see allocator/failures/failure_event.h.
EVENT = struct.Struct("<17Q3iI7Bx16s24s96s32Q")
# Behind it, but not in an older hakmem's ring: the live bytes.
LIVE = struct.Struct("<Q")
NOT_COUNTED = 2**64 - 1

REASONS = ("none", "Threshold", "Exhaustion", "MapFail")
DETAILS = ("none", "size", "alignment", "overflow", "max_alloc", "region", "heap_limit",
           "rlimit_memlock", "metadata", "max_map_count", "rlimit_as", "rlimit_data", "cgroup",
           "overcommit", "address_in_use", "injected", "unknown")
DISPOSITIONS = ("pending", "returned_null", "threw", "served_after_purge",
                "served_after_handler", "served_after_new_handler", "served_by_detour")
CALLS = ("unknown", "malloc", "calloc", "realloc", "reallocarray", "aligned_alloc", "memalign",
         "posix_memalign", "valloc", "pvalloc", "operator new", "operator new[]",
         "operator new(nothrow)", "operator new[](nothrow)", "mallocx", "rallocx")
ROUTES = ("tiny", "pool", "span", "huge")
VM_CALLS = ("none", "mmap", "munmap", "madvise", "mremap", "mprotect")


def name_in(names, index):
    return names[index] if index < len(names) else "invalid"


def text(raw):
    return raw.split(b"\0")[0].decode("utf-8", "backslashreplace")


def read(address, size):
    return bytes(gdb.selected_inferior().read_memory(address, size))


def read_text(address):
    try:
        return text(read(address, 32))
    except gdb.MemoryError:
        return "unknown"


class Event:
    """One event, as docs/failure_events.md lists its fields."""

    def __init__(self, raw):
        fields = EVENT.unpack(raw[:EVENT.size])
        (self.sequence, self.time_ns, _, self.size, self.alignment, self.count, self.class_bytes,
         self.refused_bytes, self.limit_value, self.limit_use, self.limit_needed, self.granted,
         self.cached, self.mapped, _, _, _, self.process, self.thread, self.error,
         self.attempts) = fields[:21]
        reason, detail, disposition, call, route, refused, frames = fields[21:28]
        self.reason = name_in(REASONS, reason)
        self.detail = name_in(DETAILS, detail)
        self.disposition = name_in(DISPOSITIONS, disposition)
        self.call = name_in(CALLS, call)
        self.route = name_in(ROUTES, route)
        self.refused_call = name_in(VM_CALLS, refused)
        self.thread_name, self.limit_name, self.limit_source = map(text, fields[28:31])
        self.frames = fields[31:][:frames]
        self.live = NOT_COUNTED
        if len(raw) >= EVENT.size + LIVE.size:
            self.live, = LIVE.unpack_from(raw, EVENT.size)

    def show(self):
        when = datetime.datetime.fromtimestamp(self.time_ns / 1e9, datetime.timezone.utc)
        count = "%d times " % self.count if self.count else ""
        print("#%d %s %s of %s%d bytes (alignment %d, route %s) %s after %d attempt%s: %s/%s" % (
            self.sequence, when.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), self.call, count, self.size,
            self.alignment, self.route, self.disposition, self.attempts,
            "" if self.attempts == 1 else "s", self.reason, self.detail))
        live = "" if self.live == NOT_COUNTED else "live %d, " % self.live
        print("    process %d, thread %d \"%s\"; %sgranted %d, cached %d, mapped %d bytes" % (
            self.process, self.thread, self.thread_name, live, self.granted, self.cached,
            self.mapped))
        if self.error:
            print("    %s of %d bytes refused: errno %d" % (
                self.refused_call, self.refused_bytes, self.error))
        if self.limit_name:
            print("    %s is %d, in use %d, needed %d (%s)" % (
                self.limit_name, self.limit_value, self.limit_use, self.limit_needed,
                self.limit_source))
        for frame in self.frames:
            # Of a return address, the call before it is what one wants to see.
            where = gdb.execute("info symbol %#x" % (frame - 1), to_string=True).strip()
            print("    %#x %s" % (frame, where))


def slots(described):
    """The whole events of the ring, oldest first."""
    _, _, _, capacity, slot_bytes, offset, event_bytes, recorded_at, slots_at = described[:9]
    recorded = struct.unpack("<Q", read(recorded_at, 8))[0]
    for number in range(max(0, recorded - capacity), recorded):
        raw = read(slots_at + number % capacity * slot_bytes, slot_bytes)
        sequence = struct.unpack("<Q", raw[:8])[0]
        # Else it is being written, or was lost.
        if sequence in (4 * number + 2, 4 * number + 4) and event_bytes >= EVENT.size:
            yield Event(raw[offset:offset + event_bytes])


class HakmemFailures(gdb.Command):
    """Prints the failed allocations that hakmem keeps: hakmem-failures [COUNT]."""

    def __init__(self):
        super().__init__("hakmem-failures", gdb.COMMAND_DATA)

    def invoke(self, argument, from_tty):
        # What is asked of gdb below is C, whatever language the program is in.
        language = gdb.parameter("language")
        gdb.execute("set language c", to_string=True)
        try:
            self.show(argument)
        finally:
            gdb.execute("set language " + language, to_string=True)

    @staticmethod
    def show(argument):
        try:
            address = int(gdb.parse_and_eval("(unsigned long)&hakmem_failure_ring"))
        except gdb.error as error:
            raise gdb.GdbError("no hakmem in this process: %s" % error) from error
        described = DESCRIPTOR.unpack(read(address, DESCRIPTOR.size))
        if described[0] != MAGIC or described[1] != VERSION:
            raise gdb.GdbError("hakmem_failure_ring is of a version that this script does not "
                               "know")
        recorded = struct.unpack("<Q", read(described[7], 8))[0]
        events = list(slots(described))
        if argument:
            if not argument.isdecimal() or int(argument) == 0:
                raise gdb.GdbError("not a count of failures: %s" % argument)
            events = events[-int(argument):]
        print("hakmem %s %s: %d failure%s, %d shown" % (
            read_text(described[9]), read_text(described[10]), recorded,
            "" if recorded == 1 else "s", len(events)))
        for event in events:
            event.show()


HakmemFailures()
