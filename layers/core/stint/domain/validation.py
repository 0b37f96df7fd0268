"""What pydantic finds wrong, in the words that callers read."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError


def message_of(problem: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, without the names that pydantic has for its own steps."""
    message = str(problem["msg"])
    if problem["type"] in ("too_long", "too_short"):
        return message.replace(" after validation", "")
    return message.removeprefix("Value error, ") if problem["type"] == "value_error" else message


def describe_faults(error: ValidationError) -> str:
    """Return what is wrong and where, without the values: `tools.0.name: Field required; timeout: ...`."""
    return "; ".join(f"{'.'.join(map(str, each['loc']))}: {message_of(each)}" for each in error.errors())
