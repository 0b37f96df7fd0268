"""Signatures of webhooks, and the secrets that make them.

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

import base64
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

PREFIX = "whsec_"
SECRET_BYTES = 32
"""Random bytes of a secret. The specification asks for 24 to 64."""


def new_signing_secret() -> str:
    """Return a new secret: the prefix, and random bytes in base64."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def hint_of(secret: str) -> str:
    """Return the last four characters of a secret, which tell its owner which one is in use."""
    return f"{PREFIX}...{secret[-4:]}"


def write_body(event_id: str, kind: str, created_at: int, data: Mapping[str, Any]) -> bytes:
    """Return the body of an event."""
    event = {"id": event_id, "object": "event", "created_at": created_at, "type": kind, "data": dict(data)}
    return json.dumps(event, separators=(",", ":")).encode()


def sign(signing_secrets: Sequence[str], event_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers of an event, with a signature by each of the secrets."""
    content = b"%s.%d.%s" % (event_id.encode(), timestamp, body)
    return {
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_signature(secret, content) for secret in signing_secrets),
    }


def _signature(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return f"v1,{base64.b64encode(hmac.digest(key, content, sha256)).decode()}"
