"""The parameters of a ConverseStream call."""

import json
from typing import Any

from stint.domain.errors import InvalidRequest
from stint.domain.inference import Decoding, InferenceRequest, ToolSignature
from stint.domain.tools import ToolChoice
from stint.models.converse_messages import write_conversation
from stint.models.json_schemas import close_objects, read_schema

Parameters = dict[str, Any]


def write_converse(request: InferenceRequest) -> Parameters:
    """Write a model call as ConverseStream parameters.

    Converse has no tool choice none, so the tools are left out then.

    Raises:
        InvalidRequest: a repetition penalty, a grammar, or an image that Bedrock cannot take.
    """
    tools = _tools(request.tools, request.tool_choice)
    conversation = write_conversation(request.messages, with_tools=bool(tools))
    parameters: Parameters = {
        "modelId": request.model,
        "messages": conversation.messages,
        "system": conversation.system,
        "inferenceConfig": _inference_config(request.decoding),
        "additionalModelRequestFields": _additional_fields(request.model, request.decoding),
        "toolConfig": tools,
    }
    if request.response_format is not None:
        named = read_schema(request.response_format)
        definition = {"schema": json.dumps(close_objects(named.schema)), "name": named.name}
        text_format = {"type": "json_schema", "structure": {"jsonSchema": definition}}
        parameters["outputConfig"] = {"textFormat": text_format}
    return {name: value for name, value in parameters.items() if value or name == "messages"}


def _inference_config(decoding: Decoding) -> Parameters:
    if decoding.repetition_penalty is not None:
        raise InvalidRequest(
            "Bedrock's Converse has no repetition_penalty: leave it out or set it to 1.0",
            param="sampling_params.repetition_penalty",
        )
    config: Parameters = {
        "maxTokens": decoding.max_tokens,
        "stopSequences": list(decoding.stop) if decoding.stop else None,
        "temperature": decoding.temperature,
        "topP": decoding.top_p,
    }
    return {name: value for name, value in config.items() if value is not None}


def _additional_fields(model: str, decoding: Decoding) -> Parameters:
    """Write top_k, which Converse leaves to each family: Amazon's and Cohere's have their own names for it.

    See "Inference request parameters and response fields for foundation models", Amazon Bedrock User Guide. A family
    that has none refuses it by name.
    """
    if decoding.top_k is None:
        return {}
    if "amazon.nova" in model:
        return {"inferenceConfig": {"topK": decoding.top_k}}
    return {"k" if "cohere." in model else "top_k": decoding.top_k}


def _tools(tools: tuple[ToolSignature, ...], choice: ToolChoice | str) -> Parameters:
    if not tools or choice == ToolChoice.none:
        return {}
    config: Parameters = {"tools": [{"toolSpec": _tool_spec(tool)} for tool in tools]}
    if choice == ToolChoice.required:
        config["toolChoice"] = {"any": {}}
    elif choice != ToolChoice.auto:
        config["toolChoice"] = {"tool": {"name": str(choice)}}
    return config


def _tool_spec(tool: ToolSignature) -> Parameters:
    spec: Parameters = {"name": tool.name, "inputSchema": {"json": tool.parameters}}
    return {**spec, "description": tool.description} if tool.description else spec
