"""JSON responses, which pydantic serializes in one step."""

import json
from typing import Any, TypeVar

from fastapi import Response

from stint.domain.errors import InvalidRequest
from stint.domain.paging import MAX_BYTES, Page, Window, carried_size
from stint.domain.schema import Schema

S = TypeVar("S", bound=Schema)

MAX_START = 2**31 - 1
"""The highest index of a list, the limit of DynamoDB."""

MAX_LIMIT = MAX_BYTES // 100
"""More entries than fit into any response, because each has over 100 bytes."""


NULL: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"type": "null"}}}, "description": "It is deleted."}
}


def document(schema: Schema, status: int = 200) -> Response:
    """Return a response with one object, including null fields."""
    return Response(schema.to_json(), status, media_type="application/json")


def null() -> Response:
    """Return the response `null`, as every deletion does."""
    return Response(b"null", media_type="application/json")


def listing(page: Page[S], url: str) -> Response:
    """Return a response with a page of a list, cut to the limit of a buffered function."""
    entries = [entry.model_dump_json() for entry in page.data]
    fitting = count_fitting(entries)
    has_more = json.dumps(page.has_more or fitting < len(entries))
    text = f'{{"data":[{",".join(entries[:fitting])}],"has_more":{has_more},"url":{json.dumps(url)}}}'
    return Response(text, media_type="application/json")


def count_fitting(entries: list[str]) -> int:
    """Return the number of entries within MAX_BYTES, at least one."""
    total = 0
    for count, entry in enumerate(entries):
        total += carried_size(entry)
        if total > MAX_BYTES and count:
            return count
    return len(entries)


def window_of(start_index: int | None = None, limit: int | None = None) -> Window:
    """Read the paging parameters. No `limit`, or -1, means as much as one response can contain.

    Raises:
        InvalidRequest: another negative value.
    """
    for name, value, least in (("start_index", start_index, 0), ("limit", limit, -1)):
        if value is not None and value < least:
            raise InvalidRequest(f"{name} is {value}; it must be {least} or more.", param=name)
    unlimited = limit is None or limit == -1
    return Window(start=min(start_index or 0, MAX_START), limit=None if unlimited else min(limit or 0, MAX_LIMIT))
