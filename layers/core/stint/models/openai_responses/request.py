"""The body of a request to the Responses API."""

from stint.domain.inference import AnswerFormat, InferenceRequest, JsonObjectResponseFormat, ToolSignature
from stint.models.json_schemas import read_schema
from stint.models.openai.request import Body, write_tools

ENCRYPTED_CONTENT = "reasoning.encrypted_content"


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
