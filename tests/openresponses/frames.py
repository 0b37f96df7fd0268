"""Parser of server-sent events that is as strict as the strictest client."""

import json
from dataclasses import dataclass

from tests.openresponses.bodies import require
from tests.openresponses.grammar import Stream
from tests.openresponses.schema import Json

DONE = "[DONE]"


@dataclass(frozen=True)
class Frame:
    """An event: its name, which is None for the final `[DONE]`, and its data."""

    name: str | None
    data: str

    @property
    def event(self) -> Json:
        """Return the data of the event."""
        event: Json = json.loads(self.data)
        return event


def read_frames(body: bytes, *, whole: bool = True) -> list[Frame]:
    """Parse events, each of exactly an `event` line, a `data` line and a blank line. Comments are left out.

    If the stream was cut off (`whole` is false), the last, incomplete event is left out too.
    """
    text = body.decode()
    require("\r" not in text, "A stream has carriage returns: one client loses every event")
    *blocks, rest = text.split("\n\n")
    require(not whole or rest == "", f"A stream ends in the middle of an event: {rest!r}")
    return [_read_frame(block) for block in blocks if not block.startswith(":")]


def _read_frame(block: str) -> Frame:
    lines = block.split("\n")
    if lines == [f"data: {DONE}"]:
        return Frame(None, DONE)
    shaped = len(lines) == 2 and lines[0].startswith("event: ") and lines[1].startswith("data: ")
    require(shaped, f"Not an event line and a data line: {block[:300]!r}")
    frame = Frame(lines[0].removeprefix("event: "), lines[1].removeprefix("data: "))
    require(frame.name == frame.event.get("type"), f"Event {frame.name} carries {frame.event.get('type')}")
    return frame


def check_stream(body: bytes, after: int = -1, *, whole: bool = True) -> list[Json]:
    """Check a stream against the contract, event by event, and return the events.

    `after` is the number after which the stream resumes. If it was cut off (`whole` is false), only the existing events
    are checked.
    """
    stream = Stream(after)
    frames = read_frames(body, whole=whole)
    for place, frame in enumerate(frames):
        if frame.name is None:
            require(stream.ended, f"{DONE} before the end")
            require(place == len(frames) - 1, f"Something comes after {DONE}")
        else:
            stream.take(frame.event)
    if whole:
        stream.finish()
        require(frames[-1].name is None, f"The stream does not end with {DONE}")
    return [frame.event for frame in frames if frame.name is not None]
