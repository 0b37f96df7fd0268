"""Limits on one request, and sizes of objects. Data that is already stored is read whatever its size.

A request is limited wherever it could cost far more than its own size: each tool, image or reference is a call or a
read, and small values take many times their text in memory. Limits of a body are checked while it is validated, before
anything is stored; those of a run, such as `MAX_TOOL_CALLS`, where the run reaches them. Content parts are counted
before they are validated, because each invalid one would be an error of its own.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from sys import getsizeof
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from stint.domain.fields import invalid

MAX_INFER_ITERS = 100
"""Maximum model calls of a turn or a response."""

MAX_TOOLS = 128
"""Maximum tools, and toolgroups, that a request declares."""

MAX_SERVER_TOOLS = 512
"""Maximum tools that a request's servers list for the model."""

MAX_END_USER = 512
"""Maximum characters of the id of an end user in a header, a path or a body."""

EndUserId = Annotated[str, Field(max_length=MAX_END_USER)]
"""An end user in a body. A longer id could not be in the path of an export or an erasure."""

MAX_TOOL_CALLS = 200
"""Maximum calls that the server runs in one turn or response."""

MAX_RESULT_BYTES = 8_000_000
"""Maximum bytes of the server's tool results in one turn or response, before they are cut for the model."""

MAX_TOOL_HEADERS = 64
"""Maximum headers of one tool of a registration."""

MAX_MESSAGES = 10_000
"""Maximum messages, or items, of a request."""

MAX_REFERENCED_RESPONSES = 500
"""Maximum stored responses that a request refers to by `item_reference`. Each of them is read."""

MAX_PARTS = 20_000
"""Maximum content parts in all messages, items or tool responses of a request."""

MAX_IMAGES = 2_000
"""Maximum images of a request, wherever they are."""

MAX_IMAGE_URLS = 100
"""Maximum distinct image URLs in a request, and in a model call that fetches its images first."""

MAX_ANSWER_CHARACTERS = 10_000_000
"""Maximum characters of a model's answer: reasoning, text and calls. A stored response could not have a longer text."""

MAX_ANSWER_CALLS = 1_000
"""Maximum calls in a model's answer."""

MAX_APPROVED_CALLS = 128
"""Maximum calls of MCP tools that a request approves. Each is a session with its server."""

MAX_ARGS_BYTES = 65_536
"""Maximum bytes of a toolgroup's args, or of the metadata of a model or a tool, as JSON."""

MAX_ALL_ARGS_BYTES = 262_144
"""Maximum bytes of all toolgroups' args and tools' metadata of a request, and of a shield's params, as JSON."""

MAX_URL_LENGTH = 8_192
"""Maximum characters of the URL of an MCP server or another endpoint."""

MAX_HEADERS = 65_536
"""Maximum characters of the headers and authorizations of all MCP tools of a response."""


MAX_COUNTED_MEMORY = 16_000_000
"""Counting of an object's memory ends here, which is more than a cache keeps of it."""

WITHOUT_PARTS = (str, bytes, int, float, datetime)


def size_of_json(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def memory_of(*values: object) -> int:
    """Return the bytes of values in memory, with those of their parts. A part that occurs twice counts twice."""
    pending, total = list(values), 0
    while pending and total < MAX_COUNTED_MEMORY:
        value = pending.pop()
        if not value:  # empty ones are shared
            continue
        total += getsizeof(value)
        if isinstance(value, WITHOUT_PARTS):
            continue
        if isinstance(value, BaseModel):
            total += getsizeof(value.__dict__) + getsizeof(value.__pydantic_fields_set__)
            pending += value.__dict__.values()
        else:
            pending += parts_of(value)
    return total


def parts_of(value: object) -> Iterable[object]:
    """Return the items of a collection, or the values of the fields of a dataclass."""
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, dict):
        return [*value, *value.values()]
    names: Iterable[str] = getattr(type(value), "__dataclass_fields__", ())
    return [getattr(value, name) for name in names]


def check_size(value: dict[str, Any] | None, noun: str, limit: int) -> None:
    """Refuse an object whose JSON is too large. Raises PydanticCustomError, which names no field."""
    size = size_of_json(value) if value else 0
    if size > limit:
        raise PydanticCustomError(
            "too_large",
            "{size} bytes of JSON are too many for the {noun}; at most {limit} are allowed. Store large values "
            "elsewhere.",
            {"noun": noun, "size": size, "limit": limit},
        )


def check_args(args: dict[str, Any]) -> dict[str, Any]:
    check_size(args, "args", MAX_ARGS_BYTES)
    return args


def check_parts(messages: Any) -> Any:
    """Check the number of content parts in messages, items or tool responses before they are validated."""
    if not isinstance(messages, list):
        return messages
    contents = (
        message.get(name) for message in messages if isinstance(message, dict) for name in ("content", "output")
    )
    count = sum(len(content) for content in contents if isinstance(content, list))
    if count > MAX_PARTS:
        raise invalid(f"At most {MAX_PARTS:,} content parts are allowed, not {count:,}")
    return messages


def check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    check_size(metadata, "metadata", MAX_ARGS_BYTES)
    return metadata


def check_params(params: dict[str, Any]) -> dict[str, Any]:
    check_size(params, "params", MAX_ALL_ARGS_BYTES)
    return params


def too_long(field: str, url: str) -> str | None:
    """Return an error text if a URL has too many characters, else None."""
    if len(url) <= MAX_URL_LENGTH:
        return None
    return f"The {field} has {len(url):,} characters; at most {MAX_URL_LENGTH:,} are allowed."


ToolgroupArgs = Annotated[dict[str, Any], AfterValidator(check_args)]
ModelMetadata = Annotated[dict[str, Any], AfterValidator(check_metadata)]
ShieldParams = Annotated[dict[str, Any], AfterValidator(check_params)]
ToolLimit = Field(max_length=MAX_TOOLS)
MessageLimit = Field(max_length=MAX_MESSAGES)
PartLimit = BeforeValidator(check_parts)
ServerToolNames = Annotated[list[str], Field(max_length=MAX_SERVER_TOOLS)]

MAX_CODE_FILES = 20
"""Maximum files that code can read."""

MAX_CODE_BYTES = 3_500_000
"""Maximum bytes of the files that code can read. Each run sends them to the sandbox, whose event has 6 MB."""

MAX_CALL_DEPTH = 5
"""The largest depth of a run: how many calls of agents have led to it (`domain/call_depth.py`)."""
