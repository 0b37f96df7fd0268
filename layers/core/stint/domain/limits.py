"""The most of anything that one request may bring. What is stored already is read however large it is."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

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


ToolgroupArgs = Annotated[dict[str, Any], AfterValidator(check_args)]
ToolLimit = Field(max_length=MAX_TOOLS)
MessageLimit = Field(max_length=MAX_MESSAGES)
