"""Identifiers: UUIDv7, so that the order of keys is the order of creation (RFC 9562, section 5.7)."""

import base64
import re
import secrets
import threading
import time
import uuid
from typing import Annotated

from pydantic import Field

TENANT = "default"
"""Whose data it is: everything that is stored lies under a tenant, and there is one."""

TenantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
"""A tenant that a message or an event names; the characters keep its keys apart from those of other tenants."""

PATTERN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

HEX = re.compile(r"[0-9a-f]{32}")

_lock = threading.Lock()
_last = 0


def new_id(after: str | None = None) -> str:
    """Make an id that sorts behind every id this process made before, and behind `after`.

    The 48-bit millisecond clock is followed by 12 bits that count within the millisecond (RFC 9562, section
    6.2, method 1), so that a clock that stands still, or steps back, does not break the order. An `after` that
    lies ahead of the clock moves this one id only.
    """
    global _last
    with _lock:
        _last = max(time.time_ns() // 1_000_000 << 12, _last + 1)
        ticks = _last
    if after is not None:
        ticks = max(ticks, _ticks_of(after) + 1)
    return _id_at(ticks)


def new_ids_before(identifier: str, count: int) -> list[str]:
    """Make ids that sort right before another one, and among themselves as they are given."""
    ticks = _ticks_of(identifier)
    return [_id_at(ticks - left) for left in range(count, 0, -1)]


def is_id(value: str) -> bool:
    """Tell whether a string has the form of an id: anything else cannot name a stored object."""
    return PATTERN.fullmatch(value) is not None


def new_name(prefix: str) -> str:
    """Make an id in the form that OpenAI's clients know: `resp_`, `msg_` .. and the 32 hex digits of a new id."""
    return f"{prefix}_{hex_of(new_id())}"


def hex_of(identifier: str) -> str:
    """Give the 32 hex digits of an id with dashes."""
    return identifier.replace("-", "")


def is_name(prefix: str, value: str) -> bool:
    """Tell whether a string is a name that `new_name` may have made: anything else cannot name a stored object."""
    return value.startswith(f"{prefix}_") and HEX.fullmatch(value[len(prefix) + 1 :]) is not None


def item_name(prefix: str, step_id: str, place: int) -> str:
    """Derive the id of an item from the step it stems from, so that whoever reads the step gives it the same one.

    `place` is 0 for the reasoning of an answer, 1 for its message, 2 and on for its calls.
    """
    return f"{prefix}_{hex_of(step_id)}{place:02d}"


def place_of(name: str) -> int:
    """Give the place that `item_name` wrote into an item's id."""
    return int(name.partition("_")[2][32:])


def pack_name(name: str) -> str:
    """Write the 16 bytes of a name's digits in 22 characters (base64, url-safe), without its prefix."""
    digits = name.rpartition("_")[2]
    return base64.urlsafe_b64encode(bytes.fromhex(digits)).rstrip(b"=").decode()


def unpack_name(prefix: str, packed: str) -> str:
    """Give the name that `pack_name` wrote."""
    return f"{prefix}_{base64.urlsafe_b64decode(packed + '==').hex()}"


def _id_at(ticks: int) -> str:
    value = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))


def _ticks_of(identifier: str) -> int:
    value = uuid.UUID(identifier).int
    return value >> 80 << 12 | value >> 64 & 0xFFF
