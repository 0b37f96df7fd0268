"""Ids of tasks, and positions in lists of tasks.

A task is a turn, and turns are stored below their sessions. A2A names a task by its id alone, so that id has the ids of
both, and each turn of the agent is found by it without an index, whichever API has created it.

docs/decisions.md, entry 162, has the reasons.
"""

import base64
import json
from binascii import Error

from stint.a2a.errors import task_not_found
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.domain.ids import is_id

MOST_SEEN = 10**9


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """The turn of a task."""

    session_id: str
    turn_id: str

    @property
    def task_id(self) -> str:
        return f"{self.turn_id}.{self.session_id}"


def read_task_id(task_id: str) -> TaskPlace:
    """Return the place of a task. Raises NotFound, also for a text that is no id."""
    turn_id, _, session_id = task_id.partition(".")
    if not (is_id(turn_id) and is_id(session_id)):
        raise task_not_found(task_id)
    return TaskPlace(session_id, turn_id)


@dataclass(frozen=True, slots=True)
class ListPosition:
    """The position after a task of a list.

    `session_id` is that of the task. `turn_id` is empty at the end of the session. `seen` counts the tasks up to here.
    """

    session_id: str
    turn_id: str
    seen: int

    def pack(self) -> str:
        text = json.dumps([self.session_id, self.turn_id, self.seen], separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def read_position(token: str) -> ListPosition:
    """Return the position that `pack` encoded. Raises InvalidRequest."""
    try:
        text = base64.b64decode(token[:400].encode() + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
        session_id, turn_id, seen = json.loads(text)
    except (Error, TypeError, ValueError, RecursionError):
        raise unknown_position() from None
    texts = isinstance(session_id, str) and isinstance(turn_id, str) and type(seen) is int
    if not texts or not is_id(session_id) or not (turn_id == "" or is_id(turn_id)) or not 0 <= seen < MOST_SEEN:
        raise unknown_position()
    return ListPosition(session_id, turn_id, seen)


def unknown_position() -> InvalidRequest:
    message = "pageToken is not the nextPageToken of an earlier answer. Omit it to start with the newest task."
    return InvalidRequest(message, param="pageToken")
