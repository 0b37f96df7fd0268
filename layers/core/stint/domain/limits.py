"""The most of anything that one request may bring. What is stored already is read however large it is."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from stint.domain.fields import invalid

MAX_INFER_ITERS = 100
"""Model calls of a turn or a response."""

MAX_TOOLS = 128
"""Tools, or toolgroups, that a request declares."""

MAX_SERVER_TOOLS = 512
"""Tools that the servers named by a request list, and the model is shown."""

MAX_TOOL_CALLS = 200
"""Calls that the server runs in one turn or response."""

MAX_RESULT_BYTES = 8_000_000
"""Results of the server's tools in one turn or response, before they are cut for the model."""

MAX_TOOL_HEADERS = 64
"""Headers of one tool of a registration."""

MAX_MESSAGES = 10_000
"""Messages, or items, of a request."""

MAX_REFERENCED_RESPONSES = 500
"""Stored responses to whose items a request refers by `item_reference`: each of them is read."""

MAX_PARTS = 20_000
"""Content parts in the messages, items or tool responses of a request, all together."""

MAX_IMAGES = 2_000
"""Images of a request, wherever they are."""

MAX_IMAGE_URLS = 100
"""Different URLs of images in a request, and in a model call whose images are fetched first."""

MAX_APPROVED_CALLS = 128
"""Calls of MCP tools that a request approves: each is a session with its server."""

MAX_ARGS_BYTES = 65_536
"""The args of a toolgroup, or the metadata of a model or a tool, as JSON in UTF-8."""

MAX_ALL_ARGS_BYTES = 262_144
"""The args of all toolgroups of a request and the metadata of its tools, as JSON in UTF-8; the params of a shield."""

MAX_URL_LENGTH = 8_192
"""Characters of the URL of an MCP server or another endpoint."""

MAX_HEADERS = 65_536
"""Characters of the headers and authorizations of all MCP tools of a response."""


def size_of_json(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode())


def check_size(value: dict[str, Any] | None, noun: str, limit: int) -> None:
    """Refuse an object whose JSON is too large. Raises PydanticCustomError, which names no field."""
    size = size_of_json(value) if value else 0
    if size > limit:
        raise PydanticCustomError(
            "too_large",
            "the {noun} have {size} bytes of JSON; at most {limit} are taken. Keep large values elsewhere.",
            {"noun": noun, "size": size, "limit": limit},
        )


def check_args(args: dict[str, Any]) -> dict[str, Any]:
    check_size(args, "args", MAX_ARGS_BYTES)
    return args


def check_parts(messages: Any) -> Any:
    """Count the content parts of messages, items or tool responses before each of them is validated."""
    if not isinstance(messages, list):
        return messages
    contents = (
        message.get(name) for message in messages if isinstance(message, dict) for name in ("content", "output")
    )
    count = sum(len(content) for content in contents if isinstance(content, list))
    if count > MAX_PARTS:
        raise invalid(f"At most {MAX_PARTS:,} content parts are allowed here, not {count:,}")
    return messages


def check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    check_size(metadata, "metadata", MAX_ARGS_BYTES)
    return metadata


def check_params(params: dict[str, Any]) -> dict[str, Any]:
    check_size(params, "params", MAX_ALL_ARGS_BYTES)
    return params


def too_long(field: str, url: str) -> str | None:
    """Return what is wrong with a URL of too many characters, else None."""
    if len(url) <= MAX_URL_LENGTH:
        return None
    return f"The {field} has {len(url):,} characters; at most {MAX_URL_LENGTH:,} are taken."


ToolgroupArgs = Annotated[dict[str, Any], AfterValidator(check_args)]
ModelMetadata = Annotated[dict[str, Any], AfterValidator(check_metadata)]
ShieldParams = Annotated[dict[str, Any], AfterValidator(check_params)]
ToolLimit = Field(max_length=MAX_TOOLS)
MessageLimit = Field(max_length=MAX_MESSAGES)
PartLimit = BeforeValidator(check_parts)
ServerToolNames = Annotated[list[str], Field(max_length=MAX_SERVER_TOOLS)]
