"""The part of a test's cases that one of Bazel's shards runs."""
import os
import pathlib


def share(cases):
    """Those of this shard, as Bazel numbers them; without shards, all."""
    status = os.environ.get("TEST_SHARD_STATUS_FILE")
    if status:
        pathlib.Path(status).touch()
    return cases[int(os.environ.get("TEST_SHARD_INDEX", 0))::int(os.environ.get("TEST_TOTAL_SHARDS", 1))]
