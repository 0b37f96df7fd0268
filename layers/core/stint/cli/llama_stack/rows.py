"""The rows of a file of Llama Stack, grouped by what they belong to.

Its KV store has agents, sessions and turns as rows of keys and JSON values.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError

from stint.dataclasses import dataclass, field
from stint.domain.ids import is_id
from stint.domain.json_text import parse_json
from stint.domain.validation import describe_faults


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


class RowSource(Protocol):
    """The rows of a file."""

    def read_keys(self) -> Iterable[str]:
        """Yield all keys."""
        ...

    def read(self, key: str) -> str:
        """Return the value of a key. Raises ValueError if it is not a text, or longer than the reader accepts."""
        ...


class SessionKey(NamedTuple):
    agent_id: str
    session_id: str


@dataclass(slots=True)
class SessionRows:
    """The keys of a session's rows. `key` is empty if the file does not have the session itself."""

    key: str = ""
    turns: dict[str, str] = field(default_factory=dict)
    pending: dict[str, str] = field(default_factory=dict)

    def all_keys(self) -> list[str]:
        return [key for key in (self.key, *self.turns.values(), *self.pending.values()) if key]


@dataclass(slots=True)
class FileRows:
    """All rows of a file: keys of agents by their id, and the rows of sessions. `bad` has keys and reasons."""

    agents: dict[str, str] = field(default_factory=dict)
    sessions: dict[SessionKey, SessionRows] = field(default_factory=dict)
    bad: list[tuple[str, str]] = field(default_factory=list)
    ignored: int = 0

    def add(self, key: str, parsed: RowKey) -> None:
        """Add a row."""
        if parsed.kind is RowKind.other:
            self.ignored += 1
            return
        if parsed.kind is RowKind.agent:
            self.agents[parsed.agent_id] = key
            return
        session = self.sessions.setdefault(SessionKey(parsed.agent_id, parsed.session_id), SessionRows())
        if parsed.kind is RowKind.session:
            session.key = key
        else:
            rows = session.turns if parsed.kind is RowKind.turn else session.pending
            rows[parsed.turn_id] = key


def group_rows(source: RowSource) -> FileRows:
    """Read all keys."""
    rows = FileRows()
    for key in source.read_keys():
        try:
            rows.add(key, parse_key(key))
        except ValueError as error:
            rows.bad.append((key, str(error)))
    return rows


def read_object(source: RowSource, key: str) -> Mapping[str, Any]:
    """Return the JSON object of a row. Raises ValueError."""
    value = parse_json(source.read(key))
    if not isinstance(value, dict):
        raise ValueError("the value is not a JSON object")
    return value


def reason_of(error: ValueError) -> str:
    """Return why a row is not imported, in one line and without its values."""
    return describe_faults(error) if isinstance(error, ValidationError) else str(error).partition("\n")[0]
