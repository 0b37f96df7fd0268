"""Adaptations of requests to models of chat completions servers, learned from their refusals."""

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
from stint.models.openai.message_writer import MessageWriter
from stint.models.openai.messages import REASONING, MessageForm
from stint.models.openai.request import write_body, write_request
from stint.providers.openai.errors import Refusal

NAME = re.compile(r"""(?:['"`.\[]|(?:field|parameter|argument|property):? )name\b""")
NONE_IS_ACCEPTED = re.compile(r"""reasoning_effort\W+(?:to|is|as|=|:)\W*none\b""")
EFFORT_OF_TOOLS = "reasoning_effort beside tools"
UNSAID_EFFORT = "tools without reasoning_effort none"
OTHER_NAME = re.compile(r"tool|function|json_schema")


class Adaptations:
    """Writes each request in the form that its model accepts.

    Refused hints (`verbosity`, or defaults, also that of the service tier) are omitted. Fields with a meaning take
    another form: `max_tokens` becomes `max_completion_tokens`, participants' names go into the text, `json_object`
    becomes a schema. The effort of reasoning is a hint: see `_effort`.
    """

    def __init__(self, messages: MessageWriter | None = None) -> None:
        self._messages = messages or MessageWriter()
        self._refused: dict[str, frozenset[str]] = {}

    def refused_by(self, model: str) -> frozenset[str]:
        """Return what a model is known to refuse."""
        return self._refused.get(model, frozenset())

    def learn(self, request: InferenceRequest, refusal: Refusal, adapted: frozenset[str]) -> bool:
        """Learn what the model of a request refuses, and return whether a retry can help.

        `adapted` is what the refused request was adapted to. Another request may have learned more since.
        """
        if refusal.status not in (400, 422) or refusal.is_about_length:
            return False
        learned = _refused_in(request, refusal, adapted)
        self._refused[request.model] = self.refused_by(request.model) | learned
        return not learned <= adapted

    def write(self, request: InferenceRequest, refused: frozenset[str]) -> bytes:
        """Write the body of a request, without what its model refuses.

        Raises:
            InvalidRequest: the format is a grammar, or an image cannot be read.
        """
        body = write_request(_adapt(request, refused))
        if "max_tokens" in refused and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        if "stream_options" in refused:
            del body["stream_options"]
        form = MessageForm(has_names="name" not in refused, has_reasoning=REASONING in refused)
        return write_body(body, self._messages.write(request.messages, form))


def _adapt(request: InferenceRequest, refused: frozenset[str]) -> InferenceRequest:
    if "temperature" in refused and request.decoding.temperature == 0.0:
        request = replace(request, decoding=replace(request.decoding, temperature=None))
    if "verbosity" in refused:
        request = replace(request, verbosity=None)
    if "service_tier" in refused and request.service_tier == DEFAULT_TIER:
        request = replace(request, service_tier=None)
    if "json_object" in refused and isinstance(request.response_format, JsonObjectResponseFormat):
        request = replace(request, response_format=JsonSchemaResponseFormat(json_schema=ANY_OBJECT))
    effort = _effort(request, refused)
    if effort != _effort(request):
        request = replace(request, reasoning=replace(request.reasoning or ReasoningOptions(), effort=effort))
    return request


def _effort(request: InferenceRequest, refused: Set[str] = frozenset()) -> str | None:
    """Return the effort to send; None if the field is omitted.

    OpenAI's models from gpt-5.2 on accept no effort beside tools in chat completions; the Responses API would. With
    gpt-5.4 the field must be omitted, and with gpt-5.6, which reasons by default, it must be `none`.
    """
    effort = request.reasoning.effort if request.reasoning is not None else None
    effort = "low" if effort == "minimal" and "minimal" in refused else effort
    if _has_tools(request) and effort != "none":
        effort = "none" if UNSAID_EFFORT in refused else None if EFFORT_OF_TOOLS in refused else effort
    return effort or None


def _has_tools(request: InferenceRequest) -> bool:
    """Return whether the body of a request has tools."""
    return bool(request.tools) and request.tool_choice != ToolChoice.none


def _refused_efforts(request: InferenceRequest, refusal: Refusal, adapted: frozenset[str]) -> set[str]:
    """Return what a refusal says about the effort that was sent. Its words differ between models, and change."""
    words = f"{refusal.param} {refusal.message}".lower()
    sent = _effort(request, adapted)
    if "reasoning_effort" not in words:
        return set()
    if _has_tools(request) and sent != "none" and ("tool" in words or "/responses" in words):
        must_be_none = sent is None or NONE_IS_ACCEPTED.search(words) is not None
        return {UNSAID_EFFORT} if must_be_none else {EFFORT_OF_TOOLS}
    is_known = "supported values" not in words or "'low'" in words
    return {"minimal"} if sent == "minimal" and "minimal" in words and is_known else set()


def _refused_in(request: InferenceRequest, refusal: Refusal, adapted: frozenset[str]) -> set[str]:
    words = f"{refusal.param} {refusal.message}"
    tests = {
        "temperature": request.decoding.temperature == 0.0 and "temperature" in words,
        "max_tokens": request.decoding.max_tokens is not None and "max_completion_tokens" in words,
        "stream_options": "stream_options" in words,
        "service_tier": request.service_tier == DEFAULT_TIER and "service_tier" in words,
        "verbosity": request.verbosity is not None and "verbosity" in words,
        "name": any(getattr(each, "name", "") for each in request.messages) and _is_about_names(words),
        "json_object": isinstance(request.response_format, JsonObjectResponseFormat) and _is_about_json_object(words),
        REASONING: REASONING in words,
    }
    return {name for name, refused in tests.items() if refused} | _refused_efforts(request, refusal, adapted)


def _is_about_names(words: str) -> bool:
    """Return whether a refusal is about `messages[].name`, rather than the name of a tool or a schema."""
    return NAME.search(words) is not None and OTHER_NAME.search(words) is None


def _is_about_json_object(words: str) -> bool:
    """Return whether a refusal is about the format. OpenAI and DeepSeek also refuse messages without the word json."""
    return ("response_format" in words or "json_object" in words) and "contain the word" not in words
