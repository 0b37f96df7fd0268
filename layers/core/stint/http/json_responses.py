"""JSON responses, which pydantic serializes in one step."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Response

from stint.domain.paging import MAX_BYTES, Page, carried_size
from stint.domain.schema import Schema

S = TypeVar("S", bound=Schema)

NULL: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"type": "null"}}}, "description": "It is deleted."}
}

TRACE: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/TraceDocument"}}},
        "description": "The trace of the run.",
    }
}
"""By its name, so that a function which answers with no trace does not load its classes."""


def document(schema: Schema, status: int = 200) -> Response:
    """Return a response with one object, including null fields."""
    return Response(schema.to_json(), status, media_type="application/json")


def null() -> Response:
    """Return the response `null`, as every deletion does."""
    return Response(b"null", media_type="application/json")


def listing(page: Page[S], url: str, *, position_of: Callable[[S], str] | None = None) -> Response:
    """Return a response with a page of a list, cut to the limit of a buffered function.

    With `position_of`, which returns an entry's id, it says after which id the next page starts.
    """
    entries = [entry.model_dump_json() for entry in page.data]
    fitting = count_fitting(entries)
    cut = fitting < len(entries)
    text = f'{{"data":[{",".join(entries[:fitting])}],"has_more":{json.dumps(page.has_more or cut)}'
    text += f',"url":{json.dumps(url)}'
    position = position_of(page.data[fitting - 1]) if position_of and cut else page.position
    if position_of and position is not None and (page.has_more or cut):
        text += f',"next_after":{json.dumps(position)}'
    return Response(f"{text}}}", media_type="application/json")


def count_fitting(entries: list[str]) -> int:
    """Return the number of entries within MAX_BYTES, at least one."""
    total = 0
    for count, entry in enumerate(entries):
        total += carried_size(entry)
        if total > MAX_BYTES and count:
            return count
    return len(entries)
