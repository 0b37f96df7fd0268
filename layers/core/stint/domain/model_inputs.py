"""Inputs of model calls as the API returns them.

It is rebuilt from the records that were stored for other reasons, so a call costs nothing more to make. What these
records do not tell is named in `unknown`, and left out.
"""

from typing import Any, Literal

from pydantic import Field

from stint.domain.fields import Omitted
from stint.domain.schema import Schema


class CutText(Schema):
    """A message whose texts are cut in the answer, and the number of characters that are left out."""

    message: int
    characters: int


class ModelInput(Schema):
    """The input of a model call in the form of chat completions, whatever the model's provider.

    `messages` are those from the place `start_index` on, of `message_count`, as far as they fit; `has_more` says
    whether others follow. Images in them have their `omitted_bytes` instead of their data. `parameters` and `tools`
    are null if they are not known.
    """

    object: Literal["model_input"] = "model_input"
    step_id: str
    model: str
    messages: list[dict[str, Any]]
    start_index: int
    message_count: int
    has_more: bool
    tools: list[dict[str, Any]] | None = None
    omitted_tools: Omitted[int] = None
    """Tools that do not fit into the answer."""
    parameters: dict[str, Any] | None = None
    """Sampling parameters, tool choice and response format, without those that have the provider's default."""
    is_history_cut: bool = False
    """The model did not see the older part of the history, because it is too long."""
    shortened_results: list[int] = Field(default_factory=list)
    """The places of messages with results of tools of which the model got the beginning only."""
    cut_texts: list[CutText] = Field(default_factory=list)
    """Messages of which the model saw more than the answer has."""
    unknown: list[str] = Field(default_factory=list)
    """What cannot be known any more, in words."""
