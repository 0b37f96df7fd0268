"""The rows of a file of Llama Stack, grouped by what they belong to."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from pydantic import ValidationError

from stint.dataclasses import dataclass, field
from stint.domain.json_text import parse_json
from stint.domain.llama_stack.kv_keys import RowKey, RowKind, parse_key
from stint.domain.validation import describe_faults


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
