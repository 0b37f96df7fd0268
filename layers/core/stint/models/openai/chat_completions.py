"""OpenAI's Chat Completions as an API of model servers, in the form that each model accepts."""

import re
from collections.abc import Set

from stint.domain.errors import InvalidRequest
from stint.domain.inference import InferenceRequest
from stint.models.json_schemas import read_schema
from stint.models.openai.answer import ChatCompletionReader
from stint.models.openai.message_writer import MessageWriter
from stint.models.openai.messages import REASONING, MessageForm
from stint.models.openai.refused_hints import (
    RefusedFields,
    adapt_request,
    effort_of,
    has_tools,
    may_be_adapted,
    refused_fields,
    refuses_minimal,
    with_effort,
)
from stint.models.openai.request import write_body, write_request
from stint.providers.openai.errors import FIELDS, Refusal

NAME = re.compile(r"""(?:['"`.\[]|(?:field|parameter|argument|property):? )name\b""")
NONE_IS_ACCEPTED = re.compile(r"""reasoning_effort\W+(?:to|is|as|=|:)\W*none\b""")
EFFORT_OF_TOOLS = "reasoning_effort beside tools"
UNSAID_EFFORT = "tools without reasoning_effort none"
OTHER_NAME = re.compile(r"tool|function|json_schema")
NOT_OF_OPENAI = ("top_k", "repetition_penalty")


class ChatCompletions:
    """Writes each request in the form that its model accepts. `strict`: the server is OpenAI's own.

    Refused hints (`verbosity`, `prompt_cache_key`, or defaults, also of the service tier) are omitted. Fields with a
    meaning take another form: `max_tokens` becomes `max_completion_tokens`, participants' names go into the text,
    `json_object` becomes a schema. The effort of reasoning is a hint: see `_effort`.
    """

    path = "chat/completions"

    def __init__(self, messages: MessageWriter | None = None, *, strict: bool = False) -> None:
        self._messages = messages or MessageWriter()
        self._refused = RefusedFields()
        self._strict = strict

    def check(self, request: InferenceRequest) -> None:
        """Refuse grammars and, for OpenAI's own server, parameters that only others support."""
        if request.response_format is not None:
            read_schema(request.response_format)
        for name in NOT_OF_OPENAI if self._strict else ():
            if getattr(request.decoding, name) is not None:
                raise InvalidRequest(f"OpenAI's models do not support {name}. Remove it.", param=FIELDS[name])

    def reader(self, request: InferenceRequest) -> ChatCompletionReader:  # noqa: ARG002 - the same for all requests
        return ChatCompletionReader()

    def refused_by(self, model: str) -> frozenset[str]:
        """Return what a model is known to refuse."""
        return self._refused.of(model)

    def find_refused(self, request: InferenceRequest, refusal: Refusal, adapted: frozenset[str]) -> frozenset[str]:
        """Return what a refusal seems to be about; see `ModelApi.find_refused`."""
        return frozenset(_refused_in(request, refusal, adapted)) if may_be_adapted(refusal) else frozenset()

    def remember_refused(self, model: str, names: frozenset[str]) -> None:
        """Remember what a model refuses."""
        self._refused.add(model, names)

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
    request = adapt_request(request, refused)
    effort = _effort(request, refused)
    return request if effort == _effort(request) else with_effort(request, effort)


def _effort(request: InferenceRequest, refused: Set[str] = frozenset()) -> str | None:
    """Return the effort to send; None if the field is omitted.

    OpenAI's models from gpt-5.2 on accept no effort beside tools in chat completions; the Responses API does. With
    gpt-5.4 the field must be omitted, and with gpt-5.6, which reasons by default, it must be `none`.
    """
    effort = effort_of(request)
    effort = "low" if effort == "minimal" and "minimal" in refused else effort
    if has_tools(request) and effort != "none":
        effort = "none" if UNSAID_EFFORT in refused else None if EFFORT_OF_TOOLS in refused else effort
    return effort or None


def _refused_efforts(request: InferenceRequest, refusal: Refusal, adapted: frozenset[str]) -> set[str]:
    """Return what a refusal says about the effort that was sent. Its words differ between models, and change."""
    words = f"{refusal.param} {refusal.message}".lower()
    sent = _effort(request, adapted)
    if "reasoning_effort" not in words:
        return set()
    if has_tools(request) and sent != "none" and ("tool" in words or "/responses" in words):
        must_be_none = sent is None or NONE_IS_ACCEPTED.search(words) is not None
        return {UNSAID_EFFORT} if must_be_none else {EFFORT_OF_TOOLS}
    return {"minimal"} if refuses_minimal(sent, words) else set()


def _refused_in(request: InferenceRequest, refusal: Refusal, adapted: frozenset[str]) -> set[str]:
    words = f"{refusal.param} {refusal.message}"
    tests = {
        "max_tokens": request.decoding.max_tokens is not None and "max_completion_tokens" in words,
        "stream_options": "stream_options" in words,
        "name": any(getattr(each, "name", "") for each in request.messages) and _is_about_names(words),
        REASONING: REASONING in words,
    }
    own = {name for name, refused in tests.items() if refused}
    return own | refused_fields(request, refusal) | _refused_efforts(request, refusal, adapted)


def _is_about_names(words: str) -> bool:
    """Return whether a refusal is about `messages[].name`, rather than the name of a tool or a schema."""
    return NAME.search(words) is not None and OTHER_NAME.search(words) is None
