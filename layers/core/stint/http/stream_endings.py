"""The last events of streams, and the documents of runs, by which it is known how the runs ended."""

import json
from typing import Any

from stint.http.sse import DONE

ENDINGS = frozenset({"turn_complete", "turn_awaiting_input"})
FAILURES = frozenset({"response.failed", "error"})
"""The types of the last events of turns that ended, and of responses that failed."""


def read_last_event(body: bytes) -> dict[str, Any]:
    """Return the data of the last event of a stream, without its end marker; empty if it is not an object."""
    frame = body.removesuffix(DONE).strip().rpartition(b"\n\n")[2]
    data = b"".join(line[5:] for line in frame.splitlines() if line.startswith(b"data:"))
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def is_failure(event: dict[str, Any]) -> bool:
    """Return whether an event of any API ends a run that failed."""
    return isinstance(event.get("error"), dict) or event.get("type") in FAILURES


def is_ending(event: dict[str, Any]) -> bool:
    """Return whether an event ends the stream of a turn."""
    inner = event.get("event")
    payload = inner.get("payload") if isinstance(inner, dict) else None
    return isinstance(payload, dict) and payload.get("event_type") in ENDINGS


def is_failed_run(body: bytes) -> bool:
    """Return whether the document of a turn or response has failed."""
    if b'"failed"' not in body:
        return False
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("status") == "failed"
