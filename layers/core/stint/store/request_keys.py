"""The keys of the records of requests. No other module knows their prefixes."""

import re

from stint.store.keys import Key, checked_tenant

DIGEST = re.compile(r"[0-9a-f]{64}")


def idempotency(tenant: str, digest: str) -> Key:
    """The record of a request with an idempotency key. `digest` is the SHA-256 of the key and its scope, in hex."""
    return Key(f"{checked_tenant(tenant)}#idempotency:{checked_digest(digest)}", "request")


def idempotency_blobs(tenant: str, digest: str) -> str:
    return f"expiring/{checked_tenant(tenant)}/idempotency/{checked_digest(digest)}/"


def checked_digest(value: str) -> str:
    """Return a digest that may be part of a key. Raises ValueError."""
    if DIGEST.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not the SHA-256 of a request in hex.")
    return value
