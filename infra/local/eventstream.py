"""Encoder of `application/vnd.amazon.eventstream`; botocore can only decode it.

https://smithy.io/2.0/aws/amazon-eventstream.html
"""

import struct
from zlib import crc32

_STRING = 7


def encode_event(event_type: str, content_type: str, payload: bytes) -> bytes:
    """Encode one event message."""
    headers = _header(":message-type", "event") + _header(":event-type", event_type)
    headers += _header(":content-type", content_type)
    lengths = struct.pack(">II", len(headers) + len(payload) + 16, len(headers))
    message = lengths + struct.pack(">I", crc32(lengths)) + headers + payload
    return message + struct.pack(">I", crc32(message))


def _header(name: str, value: str) -> bytes:
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", _STRING, len(value)) + value.encode()
