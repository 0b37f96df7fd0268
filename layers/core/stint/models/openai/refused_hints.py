"""Fields that models refuse although an answer does not depend on them, in both of OpenAI's APIs."""

import re
from collections.abc import Set

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
    """The names of what each model is known to refuse, for the life of the process."""

    def __init__(self) -> None:
        self._refused: dict[str, frozenset[str]] = {}

    def of(self, model: str) -> frozenset[str]:
        return self._refused.get(model, frozenset())

    def add(self, model: str, names: Set[str]) -> None:
        if names:
            self._refused[model] = self.of(model) | names


def may_be_adapted(refusal: Refusal) -> bool:
    """Return whether a refusal may be about a field."""
    return refusal.status in (400, 422) and not refusal.is_about_length


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


def refused_fields(request: InferenceRequest, refusal: Refusal) -> set[str]:
    """Return which of these a refusal of the request is about."""
    words = f"{refusal.param} {refusal.message}"
    tests = {
        "temperature": request.decoding.temperature == 0.0 and "temperature" in words,
        "verbosity": request.verbosity is not None and "verbosity" in words,
        "service_tier": request.service_tier == DEFAULT_TIER and "service_tier" in words,
        "prompt_cache_key": bool(request.cache_key) and "prompt_cache_key" in words,
        "json_object": isinstance(request.response_format, JsonObjectResponseFormat) and _is_about_json_object(words),
    }
    return {name for name, refused in tests.items() if refused}


def refuses_minimal(effort: str | None, words: str) -> bool:
    """Return whether a refusal of an effort is about `minimal`, and the model has `low`. `words` are in lower case."""
    is_known = "supported values" not in words or "'low'" in words
    return effort == "minimal" and EFFORT.search(words) is not None and "minimal" in words and is_known


def effort_of(request: InferenceRequest) -> str | None:
    return request.reasoning.effort if request.reasoning is not None else None


def with_effort(request: InferenceRequest, effort: str | None) -> InferenceRequest:
    return replace(request, reasoning=replace(request.reasoning or ReasoningOptions(), effort=effort))


def has_tools(request: InferenceRequest) -> bool:
    """Return whether the body of a request has tools."""
    return bool(request.tools) and request.tool_choice != ToolChoice.none


def _is_about_json_object(words: str) -> bool:
    """Return whether a refusal is about the format. OpenAI and DeepSeek also refuse messages without the word json."""
    named = any(name in words for name in ("response_format", "text.format", "json_object"))
    return named and "contain the word" not in words
