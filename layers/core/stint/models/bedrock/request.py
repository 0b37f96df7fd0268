"""The parameters of a ConverseStream call.

Converse has one form for all families of models, and each lacks something. What no model has is refused before anything
is stored (`check_converse`). What a family names itself is written under its name: top_k, efforts of reasoning. What a
single model lacks cannot be known, so it is sent, and `model.py` learns from the refusal.

Checkpoints of the cache are kept beside the parameters, since a model that refuses some of them gets the same call with
others. Empty parts are left out: Converse refuses an empty list of tools.
"""

import json
import re
from typing import Any

from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest
from stint.domain.inference import CacheLifetime, Decoding, InferenceRequest, ToolSignature
from stint.domain.tools import ToolChoice
from stint.models.bedrock.cache_points import CachePoint, find_cache_points
from stint.models.bedrock.messages import write_conversation
from stint.models.bedrock.reasoning import will_reason, write_effort
from stint.models.json_schemas import close_objects, read_schema

Parameters = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ConverseRequest:
    """The parameters of a call without its checkpoints, and these."""

    parameters: Parameters
    points: tuple[CachePoint, ...] = ()
    lifetime: CacheLifetime = "5m"


LACKING = {
    "repetition_penalty": "sampling_params.repetition_penalty",
    "frequency_penalty": "frequency_penalty",
    "presence_penalty": "presence_penalty",
    "seed": "seed",
}
"""Parameters that Converse lacks, with the caller's field for each."""
TIERS = ("default", "flex", "priority")
"""The service tiers of a request (API reference, ServiceTier), without `reserved`, whose capacity is bought before."""
NOT_IN_METADATA = re.compile(r"[^a-zA-Z0-9\s:_@$#=/+,.-]", re.ASCII)
MOST_METADATA, LONGEST_METADATA = 16, 256
"""Limits of the request's metadata (API reference, Converse): entries, and characters of a value."""
WITHOUT_TOP_K = ("meta.", "amazon.titan", "deepseek.", "ai21.", "openai.")


def check_converse(request: InferenceRequest) -> None:
    """Refuse parameters that Converse or the model's family lacks. The messages are not checked.

    Raises:
        InvalidRequest: a penalty, a seed, a grammar, logprobs, a service tier that no model has, or a top_k or effort
            that the family lacks.
    """
    for name, field in LACKING.items():
        if getattr(request.decoding, name) is not None:
            raise InvalidRequest(f"Bedrock's Converse does not support {name}. Remove it.", param=field)
    family = next((name for name in WITHOUT_TOP_K if name in request.model), None)
    if request.decoding.top_k is not None and family is not None:
        raise InvalidRequest(f"Model {request.model!r} does not support top_k. Remove it.", param="sampling_params")
    if request.top_logprobs is not None:
        raise InvalidRequest("Bedrock's Converse returns no log probabilities. Remove logprobs.", param="logprobs")
    if request.service_tier not in (None, *TIERS):
        raise InvalidRequest(
            f"Bedrock has no service tier {request.service_tier!r}, only {', '.join(TIERS)}. Choose one, or remove it.",
            param="service_tier",
        )
    if request.response_format is not None:
        read_schema(request.response_format)
    write_effort(request)


def write_converse(request: InferenceRequest) -> ConverseRequest:
    """Write a model call as ConverseStream parameters.

    Converse has no tool choice none, so the tools are then omitted. It cannot prevent several calls in one answer.

    Raises:
        InvalidRequest: as `check_converse`; or Bedrock does not support an image.
    """
    check_converse(request)
    tools = _tools(request.tools, request.tool_choice)
    conversation = write_conversation(request.messages, with_tools=bool(tools), with_reasoning=will_reason(request))
    reasoning, effort = write_effort(request)
    parameters: Parameters = {
        "modelId": request.model,
        "messages": conversation.messages,
        "system": conversation.system,
        "inferenceConfig": _inference_config(request.decoding),
        "additionalModelRequestFields": {**_top_k(request.model, request.decoding.top_k), **reasoning},
        "toolConfig": tools,
        "outputConfig": {**_text_format(request), **({"effort": effort} if effort else {})},
        "serviceTier": {"type": request.service_tier} if request.service_tier else None,
        "requestMetadata": _metadata(request.labels),
    }
    # `messages` is required: an empty list gets Bedrock's own error.
    written = {name: value for name, value in parameters.items() if value or name == "messages"}
    if request.cache is None:
        return ConverseRequest(written)
    points = find_cache_points(written, request.cache, conversation.breakpoints)
    return ConverseRequest(written, points, request.cache.lifetime)


def _metadata(labels: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Write labels as the metadata that Bedrock's invocation log shows. What it does not allow is replaced by `_`."""
    return {name: NOT_IN_METADATA.sub("_", value)[:LONGEST_METADATA] for name, value in labels[:MOST_METADATA]}


def _text_format(request: InferenceRequest) -> Parameters:
    if request.response_format is None:
        return {}
    named = read_schema(request.response_format)
    definition = {"schema": json.dumps(close_objects(named.schema)), "name": named.name}
    if named.description:
        definition["description"] = named.description
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}


def _inference_config(decoding: Decoding) -> Parameters:
    config: Parameters = {
        "maxTokens": decoding.max_tokens,
        "stopSequences": list(decoding.stop) if decoding.stop else None,
        "temperature": decoding.temperature,
        "topP": decoding.top_p,
    }
    return {name: value for name, value in config.items() if value is not None}


def _top_k(model: str, top_k: int | None) -> Parameters:
    """Write top_k, which each family names itself.

    See "Inference request parameters and response fields for foundation models", Amazon Bedrock User Guide. Unknown
    families get it and may refuse it by name.
    """
    if top_k is None:
        return {}
    if "amazon.nova" in model:
        return {"inferenceConfig": {"topK": top_k}}
    return {"k" if "cohere." in model else "top_k": top_k}


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
    if tool.strict:
        spec |= {"inputSchema": {"json": close_objects(tool.parameters)}, "strict": True}
    return {**spec, "description": tool.description} if tool.description else spec
