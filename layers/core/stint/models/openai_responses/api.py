"""OpenAI's Responses API as an API of model servers, in the form that each model accepts.

The server stores nothing. So a request has the whole conversation, with the reasoning items of this server and model,
and asks for encrypted reasoning, which later requests send back.
"""

import hashlib
import re

from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AnswerFormat,
    AssistantAnswer,
    InferenceRequest,
    JsonObjectResponseFormat,
    ToolSignature,
)
from stint.models.json_schemas import read_schema
from stint.models.openai.message_writer import write_json
from stint.models.openai.refused_fields import (
    RefusedFields,
    adapt_request,
    effort_of,
    find_refused_fields,
    may_be_about,
    refuses_minimal,
)
from stint.models.openai.request import CHAT_ONLY, Body, write_tools
from stint.models.openai_responses.answer import ModelResponseReader
from stint.models.openai_responses.items import ItemWriter
from stint.models.openai_responses.reasoning import read_items
from stint.providers.openai.errors import FIELDS, Refusal

REASONING_ITEMS = "reasoning items"
"""The name of earlier reasoning that the server cannot decrypt. It concerns one conversation, not the model."""
DAMAGED = re.compile(r"^The encrypted content .{1,400} could not be verified")
CHAT_FIELDS = [
    (re.compile(r"max_output_tokens$"), "max_tokens"),
    (re.compile(r"text\.format(?=$|\.)"), "response_format"),
    (re.compile(r"text\.verbosity$"), "verbosity"),
    (re.compile(r"input(?:$|[.\[].*)"), "messages"),
    (re.compile(r"(tools\[\d+\])\.(?=(?:name|description|parameters|strict)\b)"), r"\1.function."),
    (re.compile(r"tool_choice\.name$"), "tool_choice.function.name"),
]
"""The fields that have another name in chat completions, with that name."""

ENCRYPTED_CONTENT = "reasoning.encrypted_content"


class ResponsesApi:
    """Writes each request in the form that its model accepts, and nothing that a server would store.

    Refused hints are omitted: `verbosity`, reasoning summaries, encrypted reasoning (models that do not reason), a
    temperature of 0. Reasoning that the server can no longer decrypt is omitted, too. `provider` is the id of the
    server; those with the same address may have different keys.
    """

    path = "responses"

    def __init__(self, base_url: str, provider: str = "") -> None:
        self._server = hashlib.sha256(f"{provider}\n{base_url}".encode()).hexdigest()[:16]
        self.refused = RefusedFields(of_one_call=[REASONING_ITEMS])
        self._items = ItemWriter()

    def check(self, request: InferenceRequest) -> None:
        """Refuse grammars, and parameters that the API lacks."""
        if request.response_format is not None:
            read_schema(request.response_format)
        for name in CHAT_ONLY:
            if getattr(request.decoding, name) is not None:
                raise InvalidRequest(
                    f"The model's server is called by the Responses API, which has no {name}. Remove it, or use a "
                    'provider with "api": "chat".',
                    param=FIELDS.get(name, name),
                )

    def reader(self, request: InferenceRequest) -> ModelResponseReader:
        """Return the reader of an answer."""
        return ModelResponseReader(self._origin(request))

    def find_refused(self, request: InferenceRequest, refusal: Refusal, _: frozenset[str]) -> set[str]:
        """Return what a refusal may be about; see `ModelApi.find_refused`."""
        words = f"{refusal.param} {refusal.message}".lower()
        has_summary = request.reasoning is not None and request.reasoning.summary is not None
        tests = {
            ENCRYPTED_CONTENT: _is_about_include(refusal),
            REASONING_ITEMS: _is_about_damage(refusal) and self._has_reasoning(request),
            "summary": has_summary and "summar" in words and may_be_about(refusal, "reasoning"),
            "minimal": refuses_minimal(effort_of(request), refusal),
        }
        return find_refused_fields(request, refusal) | {name for name, refused in tests.items() if refused}

    def name_field(self, param: str) -> str:
        """Return the name of a field in chat completions. Items have other places than messages."""
        for pattern, name in CHAT_FIELDS:
            if pattern.match(param):
                return pattern.sub(name, param)
        return param

    def write(self, request: InferenceRequest, refused: frozenset[str]) -> bytes:
        """Write the body of a request, without what its model refuses.

        Raises:
            InvalidRequest: the request has what the API lacks, or an image cannot be read.
        """
        self.check(request)
        body = write_json(write_request(adapt_request(request, refused), refused))
        origin = "" if REASONING_ITEMS in refused else self._origin(request)
        items = b",".join(self._items.write(request.messages, origin))
        return b"".join((body[:-1], b',"input":[', items, b"]}"))

    def _origin(self, request: InferenceRequest) -> str:
        return f"{self._server}/{request.model}"

    def _has_reasoning(self, request: InferenceRequest) -> bool:
        """Return whether the request has reasoning that is sent to its model."""
        answers = (each for each in request.messages if isinstance(each, AssistantAnswer))
        return any(True for each in answers for _ in read_items(each.reasoning, self._origin(request)))


def _is_about_include(refusal: Refusal) -> bool:
    """Return whether a refusal says that the model has no encrypted reasoning."""
    words = refusal.message.lower()
    if not may_be_about(refusal, "include") or "logprobs" in words:
        return False
    return bool(refusal.param) or ("encrypted" in words and "not supported" in words)


def _is_about_damage(refusal: Refusal) -> bool:
    """Return whether a refusal says in OpenAI's words that reasoning cannot be decrypted."""
    return refusal.code == "invalid_encrypted_content" or DAMAGED.search(refusal.message) is not None


def write_request(request: InferenceRequest, refused: frozenset[str]) -> Body:
    """Write a model call as a streaming request without its input, and without what its model refuses.

    The server stores nothing, so it returns the reasoning for the next request.

    Raises:
        InvalidRequest: the format is a grammar.
    """
    include = [] if ENCRYPTED_CONTENT in refused else [ENCRYPTED_CONTENT]
    body: Body = {
        "model": request.model,
        "stream": True,
        "store": False,
        **_decoding(request),
        **write_tools(request, _tool, _choice),
    }
    if request.top_logprobs is not None:
        include.append("message.output_text.logprobs")
        body["top_logprobs"] = request.top_logprobs
    if request.service_tier is not None:
        body["service_tier"] = request.service_tier
    if request.cache_key:
        body["prompt_cache_key"] = request.cache_key
    if include:
        body["include"] = include
    text = _text(request)
    return body | _reasoning(request, refused) | ({"text": text} if text else {})


def _decoding(request: InferenceRequest) -> Body:
    decoding = request.decoding
    values = {
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_output_tokens": decoding.max_tokens,
    }
    return {name: value for name, value in values.items() if value is not None}


def _choice(name: str) -> Body:
    return {"type": "function", "name": name}


def _tool(tool: ToolSignature) -> Body:
    """Write a tool. Unlike Chat Completions, OpenAI's Responses API takes a tool as strict unless told otherwise."""
    written: Body = {"type": "function", "name": tool.name, "parameters": tool.parameters, "strict": bool(tool.strict)}
    return {**written, "description": tool.description} if tool.description else written


def _reasoning(request: InferenceRequest, refused: frozenset[str]) -> Body:
    if request.reasoning is None:
        return {}
    summary = None if "summary" in refused else request.reasoning.summary
    fields = {"effort": request.reasoning.effort, "summary": summary}
    written = {name: value for name, value in fields.items() if value}
    return {"reasoning": written} if written else {}


def _text(request: InferenceRequest) -> Body:
    text: Body = {"verbosity": request.verbosity} if request.verbosity is not None else {}
    return text if request.response_format is None else {**text, "format": _format(request.response_format)}


def _format(response_format: AnswerFormat) -> Body:
    if isinstance(response_format, JsonObjectResponseFormat):
        return {"type": "json_object"}
    schema = read_schema(response_format)
    described = {"description": schema.description} if schema.description else {}
    return {
        "type": "json_schema",
        "name": schema.name,
        "schema": schema.schema,
        "strict": bool(schema.strict),
        **described,
    }
