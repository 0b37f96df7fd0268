"""The body of a chat completions request."""

from typing import Any

from stint.domain.inference import (
    GreedySamplingStrategy,
    InferenceRequest,
    SamplingParams,
    ToolSignature,
    TopKSamplingStrategy,
    TopPSamplingStrategy,
)
from stint.domain.tools import ToolChoice
from stint.models.chat_messages import write_messages
from stint.models.json_schemas import read_schema

Body = dict[str, Any]


def write_request(request: InferenceRequest) -> Body:
    """Write a model call as a streaming chat completions request.

    `top_k` and `repetition_penalty` are no parameters of OpenAI; vLLM and most others take them by these names.

    Raises:
        InvalidRequest: a grammar, or an image that cannot be read.
    """
    body: Body = {
        "model": request.model,
        "messages": write_messages(request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
        **_sampling(request.sampling),
        **_tools(request.tools, request.tool_choice),
    }
    if request.response_format is not None:
        schema = read_schema(request.response_format)
        named = {"name": schema.name, "schema": schema.schema, **({"strict": True} if schema.strict else {})}
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    return body


def _sampling(sampling: SamplingParams) -> Body:
    parameters: Body = {"max_tokens": sampling.max_tokens or None, "stop": sampling.stop or None}
    match sampling.strategy:
        case GreedySamplingStrategy():
            parameters["temperature"] = 0.0
        case TopPSamplingStrategy() as strategy:
            parameters |= {"temperature": strategy.temperature, "top_p": strategy.top_p}
        case TopKSamplingStrategy() as strategy:
            parameters["top_k"] = strategy.top_k
    if sampling.repetition_penalty != 1.0:
        parameters["repetition_penalty"] = sampling.repetition_penalty
    return {name: value for name, value in parameters.items() if value is not None}


def _tools(tools: tuple[ToolSignature, ...], choice: ToolChoice | str) -> Body:
    """Choice none leaves the tools out: Ollama does not read `tool_choice`. Auto is every server's default."""
    if not tools or choice == ToolChoice.none:
        return {}
    body: Body = {"tools": [_tool(tool) for tool in tools]}
    if choice == ToolChoice.required:
        body["tool_choice"] = "required"
    elif choice != ToolChoice.auto:
        body["tool_choice"] = {"type": "function", "function": {"name": str(choice)}}
    return body


def _tool(tool: ToolSignature) -> Body:
    function: Body = {"name": tool.name, "parameters": tool.parameters}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": function}
