"""Keys of Llama Stack's KV store, which has agents, sessions and turns as rows of keys and JSON values."""

import re
from enum import StrEnum
from typing import NamedTuple

from stint.domain.ids import is_id


class RowKind(StrEnum):
    """The kind of a row. `other` rows are counters of the original, which are not imported."""

    agent = "agent"
    session = "session"
    turn = "turn"
    pending = "pending"
    """The step of the calls that a turn waits for."""
    other = "other"
    """A counter of the original, which is not imported."""


class RowKey(NamedTuple):
    """A key. The ids that its kind does not have are empty."""

    kind: RowKind
    agent_id: str = ""
    session_id: str = ""
    turn_id: str = ""


PATTERN = re.compile(
    r"(?:[^:]{0,200}:)?(agent|session|in_progress_tool_call_step|num_infer_iters_in_turn):([^:]+(?::[^:]+){0,2})"
)
"""A key, which may have the namespace of a shared store before it."""

COUNTS = {("agent", 1), ("session", 2), ("session", 3), ("in_progress_tool_call_step", 3)}
"""Prefixes, each with the number of its ids."""


def parse_key(key: str) -> RowKey:
    """Return the kind and the ids of a key.

    Raises:
        ValueError: the key is that of an agent, session or turn, and its ids have another form than Llama Stack's.
    """
    found = PATTERN.fullmatch(key)
    if found is None or found[1] == "num_infer_iters_in_turn":
        return RowKey(RowKind.other)
    prefix, ids = found[1], found[2].split(":")
    if (prefix, len(ids)) not in COUNTS or not all(map(is_id, ids)):
        raise ValueError("the ids in the key are not UUIDs in lowercase")
    if prefix == "session":
        return RowKey(RowKind.turn if len(ids) == 3 else RowKind.session, *ids)
    return RowKey(RowKind.agent if prefix == "agent" else RowKind.pending, *ids)
