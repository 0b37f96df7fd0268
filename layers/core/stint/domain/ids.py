"""Identifiers: UUIDv7, so that the order of keys is the order of creation (RFC 9562, section 5.7)."""

import re
import secrets
import threading
import time
import uuid

PATTERN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

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
    value = (ticks >> 12) << 80 | 0x7 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | secrets.randbits(62)
    return str(uuid.UUID(int=value))


def is_id(value: str) -> bool:
    """Tell whether a string has the form of an id: anything else cannot name a stored object."""
    return PATTERN.fullmatch(value) is not None


def _ticks_of(identifier: str) -> int:
    value = uuid.UUID(identifier).int
    return value >> 80 << 12 | value >> 64 & 0xFFF
