"""Filters of lists by metadata: `metadata[key]=value` in the query, up to 16 times. All pairs must match exactly.

OpenAI's clients write an object in a query in this form. What has another form is refused, because an ignored filter
would list everything:

    metadata=x, metadata[]=x, metadata[key=x    400: the form
    a key given twice                           400: no object has two values
    17 pairs, 65 characters, 513 characters     400: no object has such metadata
    bytes that are not UTF-8                    400
"""

from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Request

from stint.domain.errors import InvalidRequest, shorten

NAME = "metadata"
MAX_PAIRS, MAX_KEY, MAX_VALUE = 16, 64, 512
"""Maximum pairs of an object, and characters of a key and of a value (`domain/fields.py`)."""

METADATA_PARAMETER: dict[str, Any] = {
    "parameters": [
        {
            "name": NAME,
            "in": "query",
            "required": False,
            "style": "deepObject",
            "explode": True,
            "description": "pairs that the objects have, as `metadata[key]=value`: up to 16, all of which must match",
            "schema": {"type": "object", "additionalProperties": {"type": "string"}},
        }
    ]
}
"""The description of the filter, which FastAPI does not know."""


async def metadata_filter_of(request: Request) -> dict[str, str]:
    """Return the pairs of the filter, none without one.

    Raises:
        InvalidRequest: a pair has another form, or no object can have the pairs.
    """
    query: bytes = request.scope["query_string"]
    return read_filter(query) if query else {}


MetadataFilter = Annotated[dict[str, str], Depends(metadata_filter_of)]


def read_filter(query: bytes) -> dict[str, str]:
    """Return the pairs of the filter in a query. Raises as `metadata_filter_of`."""
    pairs: dict[str, str] = {}
    # Latin-1 has each byte, which is then part of UTF-8, or not.
    for name, value in parse_qsl(query.decode("latin-1"), keep_blank_values=True, encoding="latin-1"):
        if name != NAME and not name.startswith(f"{NAME}["):
            continue
        shown, key = shorten(printable(name), MAX_KEY), name[len(NAME) + 1 : -1]
        if not key or not name.endswith("]"):
            raise refusal(shown, "has no key. Write metadata[key]=value")
        try:
            key, value = to_text(key), to_text(value)
        except UnicodeDecodeError:
            raise refusal(shown, "is not UTF-8") from None
        if len(key) > MAX_KEY:
            raise refusal(shown, f"has a key of {len(key)} characters; at most {MAX_KEY} are allowed")
        if len(value) > MAX_VALUE:
            raise refusal(shown, f"has a value of {len(value)} characters; at most {MAX_VALUE} are allowed")
        if key in pairs:
            raise refusal(shown, "is given twice")
        if len(pairs) == MAX_PAIRS:
            raise refusal(NAME, f"has more than {MAX_PAIRS} pairs")
        pairs[key] = value
    return pairs


def to_text(given: str) -> str:
    """Return the text whose bytes were percent-encoded. Raises UnicodeDecodeError."""
    return given.encode("latin-1").decode()


def printable(name: str) -> str:
    return name.encode("latin-1").decode(errors="replace")


def refusal(name: str, reason: str) -> InvalidRequest:
    return InvalidRequest(f"{name} {reason}.", param=name)
