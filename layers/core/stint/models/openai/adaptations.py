"""Adaptations of requests to models of chat completions servers, learned from their refusals."""

import re

from stint.dataclasses import replace
from stint.domain.inference import InferenceRequest, JsonObjectResponseFormat, JsonSchemaResponseFormat
from stint.models.json_schemas import ANY_OBJECT
from stint.models.openai.message_writer import MessageWriter
from stint.models.openai.messages import REASONING, MessageForm
from stint.models.openai.request import write_body, write_request
from stint.providers.openai.errors import Refusal

NAME = re.compile(r"""(?:['"`.\[]|(?:field|parameter|argument|property):? )name\b""")
OTHER_NAME = re.compile(r"tool|function|json_schema")


class Adaptations:
    """Writes each request in the form that its model accepts.

    Refused hints (`verbosity`, or defaults) are omitted. Fields with a meaning take another form: `max_tokens` becomes
    `max_completion_tokens`, participants' names go into the text, `json_object` becomes a schema.
    """

    def __init__(self, messages: MessageWriter | None = None) -> None:
        self._messages = messages or MessageWriter()
        self._refused: dict[str, set[str]] = {}

    def learn(self, request: InferenceRequest, refusal: Refusal) -> bool:
        """Learn what the model of a request refuses, and return whether a retry can help."""
        if refusal.status not in (400, 422) or refusal.is_about_length:
            return False
        known = self._refused.get(request.model, set())
        learned = _refused_in(request, refusal) - known
        if learned:
            self._refused[request.model] = known | learned
        return bool(learned)

    def write(self, request: InferenceRequest) -> bytes:
        """Write the body of a request.

        Raises:
            InvalidRequest: the format is a grammar, or an image cannot be read.
        """
        refused = self._refused.get(request.model, set())
        body = write_request(_adapt(request, refused))
        if "max_tokens" in refused and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        if "stream_options" in refused:
            del body["stream_options"]
        form = MessageForm(has_names="name" not in refused, has_reasoning=REASONING in refused)
        return write_body(body, self._messages.write(request.messages, form))


def _adapt(request: InferenceRequest, refused: set[str]) -> InferenceRequest:
    if "temperature" in refused and request.decoding.temperature == 0.0:
        request = replace(request, decoding=replace(request.decoding, temperature=None))
    if "verbosity" in refused:
        request = replace(request, verbosity=None)
    if "json_object" in refused and isinstance(request.response_format, JsonObjectResponseFormat):
        request = replace(request, response_format=JsonSchemaResponseFormat(json_schema=ANY_OBJECT))
    return request


def _refused_in(request: InferenceRequest, refusal: Refusal) -> set[str]:
    words = f"{refusal.param} {refusal.message}"
    tests = {
        "temperature": request.decoding.temperature == 0.0 and "temperature" in words,
        "max_tokens": request.decoding.max_tokens is not None and "max_completion_tokens" in words,
        "stream_options": "stream_options" in words,
        "verbosity": request.verbosity is not None and "verbosity" in words,
        "name": any(getattr(each, "name", "") for each in request.messages) and _is_about_names(words),
        "json_object": isinstance(request.response_format, JsonObjectResponseFormat) and _is_about_json_object(words),
        REASONING: REASONING in words,
    }
    return {name for name, refused in tests.items() if refused}


def _is_about_names(words: str) -> bool:
    """Return whether a refusal is about `messages[].name`, rather than the name of a tool or a schema."""
    return NAME.search(words) is not None and OTHER_NAME.search(words) is None


def _is_about_json_object(words: str) -> bool:
    """Return whether a refusal is about the format. OpenAI and DeepSeek also refuse messages without the word json."""
    return ("response_format" in words or "json_object" in words) and "contain the word" not in words
