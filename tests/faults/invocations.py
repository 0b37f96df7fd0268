"""Invocations of Lambda, whose time requests can choose."""

import time
from types import SimpleNamespace

REMAINING = "x-remaining-milliseconds"
"""The header of a request that gives its invocation less time than others have."""


def make_context(milliseconds: int) -> SimpleNamespace:
    """Return the context of an invocation that ends after a time."""
    end = time.monotonic() + milliseconds / 1000
    return SimpleNamespace(
        get_remaining_time_in_millis=lambda: int((end - time.monotonic()) * 1000), aws_request_id="forked"
    )
