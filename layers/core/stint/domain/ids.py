"""Identifiers: UUIDv7, whose order is the order of creation (RFC 9562, section 5.7).

Keys of the table sort by these ids, so a Query in the order of keys is one in the order of creation, without an index.
That needs more than a clock: ids of one process must sort in the order of the calls, also if the clock stops or steps
back, and an object that follows another must sort after it, also if a process with a faster clock made the first.

    48 bits   milliseconds since 1970   } together `ticks`, which grow with each call
    12 bits   count in the millisecond  }
    62 bits   random, or derived from what the id stands for

Ids are derived instead of random where several processes must find the same one without asking each other: the items of
a step, the turns of an import, the copies of turns, and what comes directly before an existing object. (The version and
variant bits are left out above.)
"""

import base64
import re
import secrets
import threading
import time
import uuid
from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated

from pydantic import Field

TENANT = "default"
"""The owner of the data of a stack without authentication."""

TENANT_PATTERN = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")

TenantName = Annotated[str, Field(pattern=rf"^{TENANT_PATTERN.pattern}$")]
"""A tenant in a message or an event. Its characters cannot form the keys of another tenant."""

PATTERN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

HEX = re.compile(r"[0-9a-f]{32}")

MERGED_DIGITS = 8
"""Number of digits after those of the step in the id of a merged item."""

TAIL = (1 << 62) - 1
"""Mask of the random bits at the end of an id."""

_lock = threading.Lock()
_last = 0


def new_id(after: str | None = None) -> str:
    """Make an id that sorts after all earlier ids of this process, and after `after`.

    The 48-bit millisecond clock is followed by 12 bits that count within the millisecond (RFC 9562, section
    6.2, method 1), so a clock that stops or steps back does not break the order. An `after` ahead of the clock
    affects this id only.
    """
    global _last
    with _lock:
        _last = max(time.time_ns() // 1_000_000 << 12, _last + 1)
        ticks = _last
    if after is not None:
        # Not stored in `_last`: one clock that is ahead would push all later ids of this process.
        ticks = max(ticks, _ticks_of(after) + 1)
    return _id_at(ticks)


def new_ids_before(identifier: str, count: int) -> list[str]:
    """Derive ids that sort directly before another one, in the order in which they are returned.

    No other id sorts between them, not even one of the same millisecond.
    """
    value = uuid.UUID(identifier).int
    return [str(uuid.UUID(int=value - left)) for left in range(count, 0, -1)]


def derive_ids(identifier: str, count: int) -> list[str]:
    """Derive ids from another one: always the same ones, that id first. They sort in the order of the list."""
    # The tail is that of the first id, so that ids derived from different ones differ.
    ticks, tail = _ticks_of(identifier), uuid.UUID(identifier).int & TAIL
    return [_id_at(ticks + place, tail) for place in range(count)]


def id_from_time(moment: datetime, name: str) -> str:
    """Make the id of something that another server made at a time: always the same one (RFC 9562, section 6.2,
    method 3). The time is in microseconds, and the last 62 bits are those of the SHA-256 of its name.
    """
    microseconds = int(moment.timestamp()) * 1_000_000 + moment.microsecond
    ticks = (microseconds << 12) // 1000
    return _id_at(ticks, int.from_bytes(sha256(name.encode()).digest()[:8]) >> 2)


def copied_id(identifier: str, name: str) -> str:
    """Derive the id of the copy of something: always the same one for a name, with the time of the original.

    Copies with the same name sort as their originals do.
    """
    kept = uuid.UUID(identifier).int >> 48 << 48
    return str(uuid.UUID(int=kept | int.from_bytes(sha256(f"{name}:{identifier}".encode()).digest()[:6])))


def time_of(identifier: str) -> datetime:
    """Return the time at which an id was made, in UTC."""
    return datetime.fromtimestamp((_ticks_of(identifier) >> 12) / 1000, UTC)


def id_before(seconds: float) -> str:
    """Return an id that sorts before all that were made in the last seconds."""
    return _id_at(time.time_ns() // 1_000_000 - int(seconds * 1000) << 12, 0)


def is_foreign(identifier: str) -> bool:
    """Return whether another server made an id: it is a UUID of another version than 7."""
    return is_id(identifier) and identifier[14] != "7"


def inline_agent_id(session_id: str) -> str:
    """Return the id of the agent that only one session has: that of the session as a UUIDv8 (RFC 9562, section 5.8)."""
    return f"{session_id[:14]}8{session_id[15:]}"


def is_inline_agent(agent_id: str) -> bool:
    """Return whether only one session has an agent, which is in no list."""
    return agent_id[14:15] == "8"


def is_id(value: str) -> bool:
    """Return whether a string has the form of an id. No stored object has any other name."""
    return PATTERN.fullmatch(value) is not None


def new_name(prefix: str, separator: str = "_") -> str:
    """Make an id in OpenAI's form: a prefix such as `resp_` or `msg_`, and the 32 hex digits of a new id.

    The ids of files have a dash as the separator.
    """
    return name_of(prefix, new_id(), separator)


def name_of(prefix: str, identifier: str, separator: str = "_") -> str:
    """Return an id in OpenAI's form with the digits of one with dashes."""
    return f"{prefix}{separator}{hex_of(identifier)}"


def hex_of(identifier: str) -> str:
    """Return the 32 hex digits of an id with dashes."""
    return identifier.replace("-", "")


def is_name(prefix: str, value: str, separator: str = "_") -> bool:
    """Return whether a string has the form of `new_name`. No stored object has any other name."""
    return value.startswith(f"{prefix}{separator}") and HEX.fullmatch(value[len(prefix) + 1 :]) is not None


def item_name(prefix: str, step_id: str, place: int) -> str:
    """Derive the id of an item from its step, so that every reader of the step gets the same id.

    `place` is 0 for the reasoning of an answer, 1 for its message, and 2 or more for its calls.
    """
    return f"{prefix}_{hex_of(step_id)}{place:02d}"


def merged_name(prefix: str, step_id: str, place: int, number: int) -> str:
    """Return the id of an item that is merged before the output item at `place`, with a number of its own."""
    return f"{prefix}_{hex_of(step_id)}{place:04d}{number:04d}"


def order_of(place: str) -> str:
    """Return a text that sorts like the item whose id ends with these digits, after the 32 of its step.

    A merged item sorts between the output items before and after it.
    """
    if len(place) < MERGED_DIGITS:
        return place.zfill(4) if place else ""
    before, number = int(place[:4]), place[4:]
    return f"{before - 1:04d}.{number}" if before else f".{number}"


def place_of(name: str) -> int:
    """Return the place that `item_name` put into an item's id."""
    return int(place_digits(name))


def place_digits(name: str) -> str:
    """Return the digits of an item's id after those of its step."""
    return name.partition("_")[2][32:]


def pack_name(name: str) -> str:
    """Encode the 16 bytes of a name's digits in 22 characters (base64, url-safe), without the prefix."""
    digits = name.rpartition("_")[2]
    return base64.urlsafe_b64encode(bytes.fromhex(digits)).rstrip(b"=").decode()


def unpack_name(prefix: str, packed: str) -> str:
    """Return the name that `pack_name` encoded."""
    return f"{prefix}_{base64.urlsafe_b64decode(packed + '==').hex()}"


def _id_at(ticks: int, tail: int | None = None) -> str:
    """Return the id with a time, and with the last 62 bits, which are random by default."""
    tail = secrets.randbits(62) if tail is None else tail
    value = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | tail
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _ticks_of(identifier: str) -> int:
    value = uuid.UUID(identifier).int
    return value >> 80 << 12 | value >> 64 & 0xFFF
