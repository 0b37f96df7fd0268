"""Fields that models refuse although an answer does not depend on them, in both of OpenAI's APIs.

Each has a name here. `adapt_request` returns a request without the fields that its model refuses, or with another form
of them. `find_refused_fields` returns which of them an error of the server may be about: the one that the error names,
or else those in its words.
"""

import re
from collections.abc import Iterable, Set

from stint.dataclasses import replace
from stint.domain.inference import (
    DEFAULT_TIER,
    InferenceRequest,
    JsonObjectResponseFormat,
    JsonSchemaResponseFormat,
    ReasoningOptions,
)
from stint.domain.tools import ToolChoice
from stint.models.json_schemas import ANY_OBJECT
from stint.providers.openai.errors import Refusal

EFFORT = re.compile(r"reasoning[._]effort")


class RefusedFields:
    """The names of what each model is known to refuse, for the life of the process.

    What belongs to a single call, and not to a model, is never added: the names `of_one_call`.
    """

    def __init__(self, of_one_call: Iterable[str] = ()) -> None:
        self._refused: dict[str, frozenset[str]] = {}
        self._of_one_call = frozenset(of_one_call)

    def of(self, model: str) -> frozenset[str]:
        """Return what a model is known to refuse."""
        return self._refused.get(model, frozenset())

    def add(self, model: str, names: Set[str]) -> None:
        """Add what a model refuses."""
        added = names - self._of_one_call
        if added:
            self._refused[model] = self.of(model) | added


def adapt_request(request: InferenceRequest, refused: frozenset[str]) -> InferenceRequest:
    """Return a request without the hints that its model refuses, and with a schema in place of `json_object`."""
    if "temperature" in refused and request.decoding.temperature == 0.0:
        request = replace(request, decoding=replace(request.decoding, temperature=None))
    if "verbosity" in refused:
        request = replace(request, verbosity=None)
    if "service_tier" in refused and request.service_tier == DEFAULT_TIER:
        request = replace(request, service_tier=None)
    if "prompt_cache_key" in refused:
        request = replace(request, cache_key="")
    if "json_object" in refused and isinstance(request.response_format, JsonObjectResponseFormat):
        request = replace(request, response_format=JsonSchemaResponseFormat(json_schema=ANY_OBJECT))
    if "minimal" in refused and effort_of(request) == "minimal":
        request = with_effort(request, "low")
    return request


def may_be_about(refusal: Refusal, *fields: str) -> bool:
    """Return whether a refusal names one of the fields, or no field.

    Its message may quote what the caller has written, so the message counts only if there is no `param`.
    """
    path = re.split(r"[.\[]", refusal.param)
    return not refusal.param or any(path[: field.count(".") + 1] == field.split(".") for field in fields)


def find_refused_fields(request: InferenceRequest, refusal: Refusal) -> set[str]:
    """Return which of the fields that both APIs have a refusal of the request may be about."""
    words = f"{refusal.param} {refusal.message}"
    sent = {
        "temperature": request.decoding.temperature == 0.0,
        "verbosity": request.verbosity is not None,
        "service_tier": request.service_tier == DEFAULT_TIER,
        "prompt_cache_key": bool(request.cache_key),
    }
    named = (name for name, is_sent in sent.items() if is_sent and name in words)
    found = {name for name in named if may_be_about(refusal, name, f"text.{name}")}
    if isinstance(request.response_format, JsonObjectResponseFormat) and _is_about_json_object(refusal):
        found.add("json_object")
    return found


def refuses_minimal(effort: str | None, refusal: Refusal) -> bool:
    """Return whether a refusal of an effort may be about `minimal`, and the model has `low`."""
    words = f"{refusal.param} {refusal.message}".lower()
    is_known = "supported values" not in words or "'low'" in words
    is_about_effort = EFFORT.search(words) is not None and may_be_about(refusal, "reasoning_effort", "reasoning")
    return effort == "minimal" and is_about_effort and "minimal" in words and is_known


def effort_of(request: InferenceRequest) -> str | None:
    return request.reasoning.effort if request.reasoning is not None else None


def with_effort(request: InferenceRequest, effort: str | None) -> InferenceRequest:
    return replace(request, reasoning=replace(request.reasoning or ReasoningOptions(), effort=effort))


def has_tools(request: InferenceRequest) -> bool:
    """Return whether the body of a request has tools."""
    return bool(request.tools) and request.tool_choice != ToolChoice.none


def _is_about_json_object(refusal: Refusal) -> bool:
    """Return whether a refusal may be about the format.

    OpenAI and DeepSeek also refuse messages without the word json.
    """
    words = f"{refusal.param} {refusal.message}"
    named = any(name in words for name in ("response_format", "text.format", "json_object"))
    return named and "contain the word" not in words and may_be_about(refusal, "response_format", "text.format")
