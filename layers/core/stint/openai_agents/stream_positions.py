"""Positions in the stream of a session, from which a client goes on.

A position is the turn, the number of the turn's event, and the place among the events that this one becomes. A turn's
events have the same numbers in each process, and the converter is deterministic. So a position is valid in each stream
of the session, and the id of an event is made of it: a client that gets an event twice can drop it.
"""

import re
from typing import NamedTuple

from stint.domain.errors import InvalidRequest
from stint.domain.ids import hex_of

POSITION = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):([0-9]{1,6}):([0-9]{1,4})")
CREATED_ID = re.compile(r"evt_([0-9a-f]{32})")
EVENT_ID = re.compile(r"evt_([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})([0-9]{6})([0-9]{4})")
HIGHEST = 10**6


class StreamPosition(NamedTuple):
    """The last event that a client has. Turns sort by their ids."""

    turn_id: str
    number: int
    place: int

    def __str__(self) -> str:
        return f"{self.turn_id}:{self.number}:{self.place}"

    @property
    def event_id(self) -> str:
        """Return the id of the event, which is the same in each stream."""
        return f"evt_{hex_of(self.turn_id)}{self.number:06d}{self.place:04d}"


START = StreamPosition("", 0, 0)
"""The position before the first event of a session."""


def unknown_position() -> InvalidRequest:
    return InvalidRequest(
        "Last-Event-ID must be the id line or the event_id of an event of this session's turns. Remove the header to "
        "read new events only.",
        param="Last-Event-ID",
    )


def read_position(text: str, session_id: str) -> StreamPosition:
    """Return the position in an `id:` line of a session's stream, or in the id of an event. Raises InvalidRequest."""
    if (created := CREATED_ID.fullmatch(text)) is not None and created[1] == hex_of(session_id):
        return START
    if (event_id := EVENT_ID.fullmatch(text)) is not None:
        *digits, number, place = event_id.groups()
        return StreamPosition("-".join(digits), int(number), int(place))
    found = POSITION.fullmatch(text)
    if found is None:
        raise unknown_position()
    return StreamPosition(found[1], int(found[2]), int(found[3]))
