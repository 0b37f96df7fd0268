"""The keys of files, uploads and vector stores, beside those in `stint.store.keys`.

Functions with a plural name return partitions (`pk`), the others whole keys.
"""

from hashlib import sha256

from stint.domain.errors import NotFound
from stint.domain.ids import HEX

SHARDS = 8
"""Number of shards of the list entries of a tenant's files, or vector stores."""


def vector_index(tenant: str, store_id: str) -> str:
    """Return the name of the index of a vector store: 3 to 63 characters of a-z, 0-9 and - (S3 Vectors, "Indexes")."""
    digits = _digits("Vector store", "vs_", store_id)
    return f"vs-{digits}-{sha256(_tenant(tenant).encode()).hexdigest()[:16]}"


def vector_store_blobs(tenant: str, store_id: str) -> str:
    """The prefix of the objects of a vector store in the bucket."""
    return f"kept/{_tenant(tenant)}/vector_stores/{_digits('Vector store', 'vs_', store_id)}/"


def file_blobs(tenant: str, file_id: str) -> str:
    """The prefix of the objects of a file in the bucket."""
    return f"kept/{_tenant(tenant)}/files/{_digits('File', 'file-', file_id)}/"


def _digits(kind: str, prefix: str, value: str) -> str:
    """Return the digits of an id, so that no text from outside can address another record."""
    digits = value.removeprefix(prefix)
    if digits == value or HEX.fullmatch(digits) is None:
        raise NotFound(kind, value)
    return digits


def _tenant(value: str) -> str:
    if not value or "#" in value or "/" in value:
        raise ValueError(f"{value!r} is not a valid tenant: it is empty or contains '#' or '/'")
    return value
