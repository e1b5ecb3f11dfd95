"""What is wrong with what tools/bench was asked for or given."""


class BadUsage(Exception):
    """A sentence for the user; exit status 2."""


class BuildFailed(Exception):
    """A sentence for the user, and what the build said; exit status 1."""


class NotWritten(Exception):
    """A sentence for the user about a file; exit status 1."""
