"""OpenMetrics for tests of the commands that write it."""
import re

# What a sample's name has behind the family's, by its type.
SUFFIXES = {"counter": "_total", "gauge": ""}


def parse_openmetrics(text):
    """{(name, labels): value} of a text that keeps to OpenMetrics 1.0, else an AssertionError."""
    assert text.endswith("\n# EOF\n"), text[-80:]
    families, samples, family, meta = set(), {}, None, {}
    for line in text[:-len("# EOF\n")].splitlines():
        found = re.fullmatch(r"# (TYPE|UNIT|HELP) ([a-zA-Z_:][a-zA-Z0-9_:]*) ([^\\\n]+)", line)
        if found:
            what, name, value = found.groups()
            if name != family:
                assert name not in families, "interleaved: " + name
                families.add(name)
                family, meta, sampled = name, {}, False
            assert what not in meta and not sampled, line
            meta[what] = value
            if what == "TYPE":
                assert value in SUFFIXES, line
            if what == "UNIT":
                assert name.endswith("_" + value), line
            continue
        found = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\]|\\["\\n])*"(?:,(?!\})|(?=\})))+)\})? (\d+)', line)
        assert found, line
        name, labels, value = found.groups()
        assert name == family + SUFFIXES[meta["TYPE"]], line
        assert (name, labels) not in samples, line
        samples[name, labels] = int(value)
        sampled = True
    return samples
