"""OpenAI's Chat Completions as an API of model servers, in the form that each model accepts.

A request is first written as OpenAI documents it. Models and compatible servers refuse parts of that form, so each part
that can be omitted or written differently has a name: those of both APIs in `refused_fields`, and here those of this
API. A request is written without what is known to be refused.
"""

import re
from collections.abc import Set

from stint.domain.errors import InvalidRequest
from stint.domain.inference import InferenceRequest
from stint.models.json_schemas import read_schema
from stint.models.openai.answer import ChatCompletionReader
from stint.models.openai.message_writer import MessageWriter
from stint.models.openai.messages import REASONING, MessageForm
from stint.models.openai.refused_fields import (
    RefusedFields,
    adapt_request,
    effort_of,
    find_refused_fields,
    has_tools,
    may_be_about,
    refuses_minimal,
    with_effort,
)
from stint.models.openai.request import write_body, write_request
from stint.providers.openai.errors import FIELDS, Refusal

NAME = re.compile(r"""(?:['"`.\[]|(?:field|parameter|argument|property):? )name\b""")
NONE_IS_ACCEPTED = re.compile(r"""reasoning_effort\W+(?:to|is|as|=|:)\W*none\b""")
OTHER_NAME = re.compile(r"tool|function|json_schema")
NOT_OF_OPENAI = ("top_k", "repetition_penalty")
OMIT_EFFORT_OF_TOOLS = "reasoning_effort beside tools"
"""The model has tools only without the field, as gpt-5.4."""
NEEDS_EFFORT_NONE = "tools without reasoning_effort none"
"""The model has tools only with the effort none, as gpt-5.6."""


class ChatCompletions:
    """Writes each request in the form that its model accepts. `is_of_openai`: the server is OpenAI's own.

    Refused hints (`verbosity`, `prompt_cache_key`, or defaults, also of the service tier) are omitted. Fields with a
    meaning take another form: `max_tokens` becomes `max_completion_tokens`, participants' names go into the text,
    `json_object` becomes a schema. The effort of reasoning is a hint: see `_effort`.
    """

    path = "chat/completions"

    def __init__(self, messages: MessageWriter | None = None, *, is_of_openai: bool = False) -> None:
        self.refused = RefusedFields()
        self._messages = messages or MessageWriter()
        self._is_of_openai = is_of_openai

    def check(self, request: InferenceRequest) -> None:
        """Refuse grammars and, for OpenAI's own server, parameters that only others support."""
        if request.response_format is not None:
            read_schema(request.response_format)
        for name in NOT_OF_OPENAI if self._is_of_openai else ():
            if getattr(request.decoding, name) is not None:
                raise InvalidRequest(f"OpenAI's models do not support {name}. Remove it.", param=FIELDS[name])

    def reader(self, request: InferenceRequest) -> ChatCompletionReader:  # noqa: ARG002 - the same for all requests
        """Return the reader of an answer."""
        return ChatCompletionReader()

    def find_refused(self, request: InferenceRequest, refusal: Refusal, adapted: frozenset[str]) -> set[str]:
        """Return what a refusal may be about; see `ModelApi.find_refused`."""
        found = find_refused_fields(request, refusal) | _find_refused_forms(request, refusal)
        return found | _find_refused_efforts(request, refusal, adapted)

    def name_field(self, param: str) -> str:
        """Return the field itself."""
        return param

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
    if has_tools(request) and effort != "none":
        effort = "none" if NEEDS_EFFORT_NONE in refused else None if OMIT_EFFORT_OF_TOOLS in refused else effort
    return effort or None


def _find_refused_efforts(request: InferenceRequest, refusal: Refusal, adapted: frozenset[str]) -> set[str]:
    """Return what a refusal says about the effort that was sent. Its words differ between models, and change."""
    words = f"{refusal.param} {refusal.message}".lower()
    sent = _effort(adapt_request(request, adapted), adapted)
    if "reasoning_effort" not in words or not may_be_about(refusal, "reasoning_effort"):
        return set()
    if has_tools(request) and sent != "none" and ("tool" in words or "/responses" in words):
        must_be_none = sent is None or NONE_IS_ACCEPTED.search(words) is not None
        return {NEEDS_EFFORT_NONE} if must_be_none else {OMIT_EFFORT_OF_TOOLS}
    return {"minimal"} if refuses_minimal(sent, refusal) else set()


def _find_refused_forms(request: InferenceRequest, refusal: Refusal) -> set[str]:
    words = f"{refusal.param} {refusal.message}"
    has_names = any(getattr(each, "name", "") for each in request.messages)
    is_about_limit = "max_completion_tokens" in words and may_be_about(refusal, "max_tokens", "max_completion_tokens")
    tests = {
        "max_tokens": request.decoding.max_tokens is not None and is_about_limit,
        "stream_options": "stream_options" in words and may_be_about(refusal, "stream_options"),
        "name": has_names and _is_about_names(words) and may_be_about(refusal, "messages"),
        REASONING: REASONING in words and may_be_about(refusal, "messages"),
    }
    return {name for name, refused in tests.items() if refused}


def _is_about_names(words: str) -> bool:
    """Return whether a refusal is about `messages[].name`, rather than the name of a tool or a schema."""
    return NAME.search(words) is not None and OTHER_NAME.search(words) is None
