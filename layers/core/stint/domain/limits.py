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

MAX_ARGS_BYTES = 65_536
"""The args of a toolgroup, as JSON in UTF-8."""


def check_args(args: dict[str, Any]) -> dict[str, Any]:
    size = len(json.dumps(args, ensure_ascii=False).encode())
    if size > MAX_ARGS_BYTES:
        raise PydanticCustomError(
            "too_large",
            "the args have {size} bytes of JSON; at most {limit} are taken. Keep large values where the tool runs.",
            {"size": size, "limit": MAX_ARGS_BYTES},
        )
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


ToolgroupArgs = Annotated[dict[str, Any], AfterValidator(check_args)]
ToolLimit = Field(max_length=MAX_TOOLS)
MessageLimit = Field(max_length=MAX_MESSAGES)
PartLimit = BeforeValidator(check_parts)
