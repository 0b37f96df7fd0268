"""Pydantic's errors as messages for callers."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

MISSING_FIELD = "missing_field"
"""The type of an error whose message begins with the name of a missing field, which its context has, too."""


def message_of(problem: Mapping[str, Any]) -> str:
    """Return the message of an error, without the names of pydantic's internal steps."""
    message = str(problem["msg"])
    if problem["type"] in ("model_type", "model_attributes_type", "dataclass_type"):
        return "Input should be an object"
    if problem["type"] in ("too_long", "too_short"):
        return message.replace(" after validation", "")
    return message.removeprefix("Value error, ") if problem["type"] == "value_error" else message


def describe_faults(error: ValidationError) -> str:
    """Return all errors and their locations, without values: `tools.0.name: Field required; timeout: ...`."""
    return "; ".join(": ".join(filter(None, (path_of(each), message_of(each)))) for each in error.errors())


def path_of(problem: Mapping[str, Any]) -> str:
    """Return the location of an error; an empty text for that of the whole value."""
    return ".".join(map(str, problem["loc"]))
