"""Checks of the vectors that a provider returns."""

import base64
import binascii
import math
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any

from stint.domain.errors import ModelError
from stint.retrieval.port import Vector


def read_vector(value: Any) -> Vector:
    """Return a vector from JSON: numbers, or little-endian float32 in base64. Raises ModelError."""
    if isinstance(value, str):
        return decode_vector(value)
    if isinstance(value, list) and all(type(each) in (int, float) for each in value):
        return [float(each) for each in value]
    raise ModelError("The embedding model's provider sent a vector that is neither a list of numbers nor base64.")


def decode_vector(text: str) -> Vector:
    """Return a vector from little-endian float32 in base64. Raises ModelError."""
    try:
        raw = base64.b64decode(text, validate=True)
        return list(struct.unpack(f"<{len(raw) // 4}f", raw))
    except (binascii.Error, struct.error) as error:
        raise ModelError("The embedding model's provider sent a vector that is not float32 in base64.") from error


def check_vectors(vectors: Sequence[Vector], count: int, dimensions: int | None) -> None:
    """Check the number of vectors, and that they are finite and have one dimension: `dimensions`, if it was requested.

    Raises:
        ModelError: a check fails.
    """
    if len(vectors) != count:
        raise ModelError(f"The embedding model's provider sent {len(vectors)} vectors for {count} texts.")
    found = sorted({len(vector) for vector in vectors})
    if len(found) > 1 or found == [0]:
        raise ModelError(f"The embedding model's provider sent vectors of different or no dimensions: {found}.")
    if dimensions is not None and found not in ([], [dimensions]):
        raise ModelError(
            f"The embedding model's provider sent {found[0]} dimensions where {dimensions} were requested. The model "
            "may have a fixed dimension."
        )
    if not all(map(math.isfinite, chain.from_iterable(vectors))):
        raise ModelError("The embedding model's provider sent a vector with a component that is not a finite number.")
