"""The body of a chat completions request.

It is written as OpenAI documents it, with the fields of vLLM where OpenAI has none. A field is left out if the caller
did not set it, because compatible servers may refuse fields that they do not know. What a model refuses nevertheless is
left out by `chat_completions.py`.

The messages are JSON already when a body is written (`message_writer.py`), so they are joined to it as bytes: a long
history is not written again for each call.
"""

from collections.abc import Callable
from typing import Any

from stint.domain.inference import AnswerFormat, Decoding, InferenceRequest, JsonObjectResponseFormat, ToolSignature
from stint.domain.tools import ToolChoice
from stint.models.json_schemas import read_schema
from stint.models.openai.message_writer import write_json

Body = dict[str, Any]

CHAT_ONLY = ("top_k", "repetition_penalty", "frequency_penalty", "presence_penalty", "stop", "seed")
"""Parameters of a request that the Responses API lacks."""


def write_request(request: InferenceRequest) -> Body:
    """Write a model call as a streaming chat completions request, without its messages.

    OpenAI lacks `top_k` and `repetition_penalty`; vLLM and most others support them under these names. Chat completions
    have no reasoning summaries: a server streams the reasoning itself, if at all.

    Raises:
        InvalidRequest: the format is a grammar.
    """
    body: Body = {
        "model": request.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        **_decoding(request.decoding),
        **write_tools(request, _tool, _choice),
    }
    if request.reasoning is not None and request.reasoning.effort:
        body["reasoning_effort"] = request.reasoning.effort
    if request.service_tier is not None:
        body["service_tier"] = request.service_tier
    if request.verbosity is not None:
        body["verbosity"] = request.verbosity
    if request.cache_key:
        body["prompt_cache_key"] = request.cache_key
    if request.top_logprobs is not None:
        # 0 is left out: `logprobs` alone asks for those of the answer's own tokens.
        body |= {"logprobs": True} | ({"top_logprobs": request.top_logprobs} if request.top_logprobs else {})
    if request.response_format is not None:
        body["response_format"] = _response_format(request.response_format)
    return body


def write_body(body: Body, messages: list[bytes]) -> bytes:
    """Return a body as JSON in UTF-8. `messages` has the JSON of each of its messages."""
    return b"".join((write_json(body)[:-1], b',"messages":[', b",".join(messages), b"]}"))


def _response_format(response_format: AnswerFormat) -> Body:
    if isinstance(response_format, JsonObjectResponseFormat):
        return {"type": "json_object"}
    schema = read_schema(response_format)
    named = {"name": schema.name, "schema": schema.schema, **({"strict": True} if schema.strict else {})}
    if schema.description:
        named["description"] = schema.description
    return {"type": "json_schema", "json_schema": named}


def _decoding(decoding: Decoding) -> Body:
    names = ("temperature", "top_p", "top_k", "max_tokens", "seed")
    penalties = ("frequency_penalty", "presence_penalty", "repetition_penalty")
    parameters: Body = {name: getattr(decoding, name) for name in (*names, *penalties)}
    parameters["stop"] = list(decoding.stop) if decoding.stop else None
    return {name: value for name, value in parameters.items() if value is not None}


def write_tools(
    request: InferenceRequest, write_tool: Callable[[ToolSignature], Body], write_choice: Callable[[str], Body]
) -> Body:
    """Write the tools and the choice. None omits the tools, because Ollama ignores `tool_choice`; auto is the default.

    OpenAI refuses `parallel_tool_calls` without tools. The APIs differ in the form of a tool, and of a choice by name.
    """
    choice = request.tool_choice
    if not request.tools or choice == ToolChoice.none:
        return {}
    body: Body = {"tools": [write_tool(tool) for tool in request.tools]}
    if choice == ToolChoice.required:
        body["tool_choice"] = "required"
    elif choice != ToolChoice.auto:
        body["tool_choice"] = write_choice(str(choice))
    if request.parallel_tool_calls is not None:
        body["parallel_tool_calls"] = request.parallel_tool_calls
    return body


def _choice(name: str) -> Body:
    return {"type": "function", "function": {"name": name}}


def _tool(tool: ToolSignature) -> Body:
    function: Body = {"name": tool.name, "parameters": tool.parameters}
    if tool.description:
        function["description"] = tool.description
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}
