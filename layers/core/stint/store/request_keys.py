"""The keys of the records of requests. No other module knows their prefixes."""

import re

from stint.domain.ids import HEX
from stint.store.keys import Key, checked_tenant

DIGEST = re.compile(r"[0-9a-f]{64}")


def idempotency(tenant: str, digest: str) -> Key:
    """The record of a request with an idempotency key. `digest` is the SHA-256 of the key and its scope, in hex."""
    return Key(f"{checked_tenant(tenant)}#idempotency:{checked_digest(digest)}", "request")


def admin_idempotency(tenant: str, digest: str) -> Key:
    """The record of such a request of administration, whose function reaches no other records of requests."""
    return Key(f"{checked_tenant(tenant)}#admin-idempotency:{checked_digest(digest)}", "request")


def idempotency_blobs(tenant: str, digest: str) -> str:
    return f"expiring/{checked_tenant(tenant)}/idempotency/{checked_digest(digest)}/"


def checked_digest(value: str) -> str:
    """Return a digest that may be part of a key. Raises ValueError."""
    if DIGEST.fullmatch(value) is None:
        raise ValueError(f"{value!r} is not the SHA-256 of a request in hex.")
    return value


def retry_claim(tenant: str, object_id: str, retry_count: int) -> Key:
    """The claim of a created object for the retry with a count. Raises ValueError for an invalid id."""
    digits = object_id.rpartition("_")[2].replace("-", "")
    if HEX.fullmatch(digits) is None:
        raise ValueError(f"{object_id!r} is not the id of an object.")
    return Key(f"{checked_tenant(tenant)}#retry:{object_id}", f"{retry_count:04d}")


def creation_attempts(tenant: str, fingerprint: str) -> str:
    """The attempts with a fingerprint. Raises ValueError for an invalid one."""
    if HEX.fullmatch(fingerprint) is None:
        raise ValueError(f"{fingerprint!r} is not the fingerprint of a request.")
    return f"{checked_tenant(tenant)}#attempt:{fingerprint}"


def creation_attempt(tenant: str, fingerprint: str, object_id: str) -> Key:
    """The attempt that creates an object."""
    return Key(creation_attempts(tenant, fingerprint), object_id)
