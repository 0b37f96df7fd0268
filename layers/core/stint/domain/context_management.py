"""OpenAI's `context_management`: when the history of a model call is compacted."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictInt

from stint.domain.fields import KnownTypes, Omitted
from stint.domain.schema import Request

MIN_THRESHOLD = 1_000
"""Smallest `compact_threshold`, as at OpenAI. A smaller one would pay for a summary before almost every model call."""


class ContextManagement(Request):
    """A way to shorten a history. The only one is `compaction`.

    Without a `compact_threshold` (in tokens), the history is compacted when it is too long for the model.
    """

    type: Literal["compaction"]
    compact_threshold: Omitted[Annotated[StrictInt, Field(ge=MIN_THRESHOLD)]] = None


ContextManagements = Annotated[
    list[Annotated[ContextManagement, BeforeValidator(KnownTypes("context_management", ("compaction",), {}))]],
    Field(max_length=1),
]
"""The value of the field. An empty list is the default: nothing is compacted."""
