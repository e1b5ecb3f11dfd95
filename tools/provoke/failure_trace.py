"""Failure traces (HAKMEM_ACE_TRACE) as tests read them: strictly."""
import collections
import json
import pathlib

import jsonschema

GIVEN_UP = ("returned_null", "threw")


class Validator:
    """Says what is wrong with a line, by docs/failure_events.schema.json."""

    def __init__(self, schema_path):
        schema = json.loads(pathlib.Path(schema_path).read_text())
        kind = jsonschema.validators.validator_for(schema)
        kind.check_schema(schema)
        self.validator = kind(schema)
        self.lines = 0

    def complaints(self, line):
        self.lines += 1
        try:
            record = json.loads(line, object_pairs_hook=no_duplicates)
        except ValueError as error:
            return ["not JSON (%s): %s" % (error, line)]
        return ["%s at %s: %s" % (error.message[:300], "/".join(map(str, error.absolute_path)), line[:1000])
                for error in self.validator.iter_errors(record)]


def no_duplicates(pairs):
    names = collections.Counter(name for name, _ in pairs)
    if names and names.most_common(1)[0][1] > 1:
        raise ValueError("a name occurs twice")
    return dict(pairs)


class Trace:
    """The lines of one process."""

    def __init__(self, path, validator):
        text = pathlib.Path(path).read_bytes()
        self.pid = int(str(path).rsplit(".", 1)[1])
        self.complaints = []
        if not text.endswith(b"\n"):
            self.complaints.append("the last line is not whole")
        lines = text.decode().split("\n")[:-1]
        for line in lines:
            self.complaints += validator.complaints(line)
        self.records = [] if self.complaints else [json.loads(line) for line in lines]
        if not self.complaints:
            self.complaints = list(self.structure_complaints())

    def of(self, event):
        return [record for record in self.records if record["event"] == event]

    @property
    def failures(self):
        return self.of("failure")

    @property
    def ended(self):
        return bool(self.of("end"))

    def structure_complaints(self):
        """The lines' order, and that the counts agree with them."""
        if not self.records or self.records[0]["event"] != "start":
            yield "the first line is no start"
            return
        if len(self.of("start")) > 1 or len(self.of("end")) > 1:
            yield "more than one start or end"
        if any(record["pid"] != self.pid for record in self.records):
            yield "a line of another process"
        clocks = [record["monotonic_ns"] for record in self.records if "monotonic_ns" in record]
        if clocks != sorted(clocks):
            yield "the clock goes backwards"
        yield from self.count_complaints()

    def count_complaints(self):
        numbers = [record["sequence"] for record in self.failures]
        if numbers != sorted(set(numbers)):
            yield "sequence numbers do not rise: %s" % numbers[:20]
        dropped = sum(record.get("dropped", 0) for record in self.failures)
        if numbers and numbers[-1] != len(numbers) + dropped:
            yield "event %d is the last, but %d lines and %d dropped" % (numbers[-1], len(numbers), dropped)
        if not self.ended:
            return
        end = self.records[-1]
        if end["event"] != "end":
            yield "lines after the end"
        if end["failures"] != len(numbers) + end["dropped"]:
            yield "the end counts %d failures and %d dropped, but there are %d lines" % (
                end["failures"], end["dropped"], len(numbers))


def read_traces(folder, validator):
    """The traces trace.PID of a folder, by process."""
    return [Trace(path, validator)
            for path in sorted(pathlib.Path(folder).glob("trace.*"), key=lambda p: int(p.suffix[1:]))]
