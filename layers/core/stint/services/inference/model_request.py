"""Conversion of Llama Stack's inference requests to model calls.

As for chat completions (`chat/request.py`), each result must follow the answer with its call, and a call without a
result gets one. Tools come as lists of parameters, and become JSON schemas. If the request replaces the system message,
the definitions of the tools are also written into the system message that has a placeholder for them.
"""

from collections import Counter
from collections.abc import Sequence

from stint.domain.content import Content, text_of
from stint.domain.errors import InvalidRequest
from stint.domain.inference import (
    AssistantAnswer,
    InferenceRequest,
    ModelMessage,
    ResponseFormat,
    SystemText,
    ToolResult,
    ToolSignature,
    UserInput,
)
from stint.domain.llama_stack.inference import (
    ChatOptions,
    CompletionMessageInput,
    InferenceMessage,
    InferenceOptions,
    InferenceTool,
)
from stint.domain.llama_stack.registrations import SystemMessage
from stint.domain.messages import UserMessage
from stint.domain.tools import LONGEST_TOOL_NAME, ToolChoice, ToolDef, ToolParameter, ToolResponseMessage, is_tool_name
from stint.loop.structured_output import check_schema
from stint.loop.transcript import Transcript
from stint.models.json_schemas import read_schema
from stint.services.registry.tool_schemas import insert_definitions, signature_of


def chat_call(options: ChatOptions, messages: Sequence[InferenceMessage], model_id: str) -> InferenceRequest:
    """Convert the messages of a chat to a model call.

    Raises:
        InvalidRequest: a tool, the tool choice, a schema or a call's result is invalid. The message names it.
    """
    tools = signatures_of(options.tools)
    refuse_unknown_choice(options, [tool.name for tool in tools])
    return InferenceRequest(
        model=model_id,
        messages=read_messages(messages, tools if options.replaces_system_message else ()),
        # A model that sees no tools cannot call one.
        tools=() if options.choice is ToolChoice.none else tools,
        tool_choice=options.choice,
        decoding=options.sampling_params.to_decoding(),
        response_format=checked_format(options.response_format),
        top_logprobs=options.logprobs.top_k if options.logprobs else None,
    )


def completion_call(options: InferenceOptions, content: Content, model_id: str) -> InferenceRequest:
    """Convert the content of a completion to a model call, in which it is the only message.

    Raises:
        InvalidRequest: the schema of the response format is invalid.
    """
    return InferenceRequest(
        model=model_id,
        messages=(UserInput(content),),
        decoding=options.sampling_params.to_decoding(),
        response_format=checked_format(options.response_format),
        top_logprobs=options.logprobs.top_k if options.logprobs else None,
    )


def checked_format(response_format: ResponseFormat | None) -> ResponseFormat | None:
    """Return the response format. Raises InvalidRequest if it is a grammar, or its schema is invalid."""
    if response_format is not None:
        check_schema(read_schema(response_format).schema, "response_format.json_schema")
    return response_format


def read_messages(messages: Sequence[InferenceMessage], tools: Sequence[ToolSignature]) -> tuple[ModelMessage, ...]:
    """Convert messages for models. A call without a result gets one that says so.

    `tools` are inserted into the system message that has a placeholder for them.

    Raises:
        InvalidRequest: a message answers a call that is not open.
    """
    transcript = Transcript()
    for index, message in enumerate(messages):
        match message:
            case SystemMessage(content=content):
                text = text_of(content)
                transcript.append_message(SystemText(insert_definitions(text, tools) if tools else text))
            case UserMessage(content=content):
                transcript.append_message(UserInput(content))
            case CompletionMessageInput(content=content, tool_calls=calls):
                transcript.append_message(AssistantAnswer(text_of(content), tuple(calls)))
            case ToolResponseMessage():
                transcript.append_message(result_of(message, transcript, f"messages[{index}].call_id"))
    transcript.close()
    return tuple(transcript.messages)


def result_of(message: ToolResponseMessage, transcript: Transcript, where: str) -> ToolResult:
    call = transcript.open.get(message.call_id)
    if call is None:
        raise InvalidRequest(
            f"{where}: There is no unanswered call {message.call_id[:100]!r}. A message of role tool must follow the "
            "assistant message that has its call in tool_calls.",
            param=where,
        )
    return ToolResult(call.call_id, call.tool_name, message.content)


def signatures_of(tools: Sequence[InferenceTool]) -> tuple[ToolSignature, ...]:
    """Convert tools for models. Raises InvalidRequest if a name is invalid or occurs twice."""
    for name, count in Counter(tool.tool_name for tool in tools).items():
        if not is_tool_name(name):
            raise InvalidRequest(
                f"Tool {name[:100]!r} has an invalid name: providers accept names of 1 to {LONGEST_TOOL_NAME} letters, "
                "digits, _ and -. Rename it.",
                code="invalid_tool_name",
                param="tools",
            )
        if count > 1:
            message = f"Tool {name!r} is declared {count} times. Tool names must be unique."
            raise InvalidRequest(message, code="duplicate_tool", param="tools")
    return tuple(map(to_signature, tools))


def to_signature(tool: InferenceTool) -> ToolSignature:
    parameters = [
        ToolParameter(
            name=name,
            parameter_type=each.param_type,
            description=each.description or "",
            required=each.required,
            default=each.default,
        )
        for name, each in tool.parameters.items()
    ]
    return signature_of(ToolDef(name=tool.tool_name, description=tool.description, parameters=parameters))


def refuse_unknown_choice(options: ChatOptions, names: Sequence[str]) -> None:
    choice = options.choice
    if choice is ToolChoice.required and not names:
        message = "A tool is required by tool_choice, but tools has none. Add the tool."
    elif isinstance(choice, ToolChoice) or choice in names:
        return
    else:
        message = f"Tool choice {choice[:100]!r} is unknown. Use auto, required, none or the name of a tool: {names}"
    raise InvalidRequest(message, code="tool_not_found", param="tool_config.tool_choice")
