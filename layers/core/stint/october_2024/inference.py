"""Conversion of inference requests and answers of October 2024.

Requests become those of 0.2.12, so that limits, budgets and model adapters are theirs. Three things differ: a built-in
tool has no parameters, which the conversion adds; a tool result may have no call id, and is then that of the first call
without a result; and an answer with calls ends with `end_of_turn`, because there is no `end_of_message` in a stream.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from stint.domain.content import text_of
from stint.domain.llama_stack.embeddings import InferenceEmbeddingsRequest
from stint.domain.llama_stack.inference import (
    ChatCompletionResponse,
    ChatCompletionResponseStreamChunk,
    CompletionMessageInput,
    CompletionResponse,
    CompletionResponseStreamChunk,
    InferenceChatRequest,
    InferenceCompletionRequest,
    InferenceMessage,
    InferenceTool,
    ToolParamDefinition,
)
from stint.domain.llama_stack.registrations import SafetyMessage, SystemMessage
from stint.domain.run_events import TextDelta
from stint.domain.steps import CompletionMessage, StopReason
from stint.domain.tools import ToolCall, ToolChoice, ToolResponseMessage
from stint.october_2024.agents import to_sampling_params
from stint.october_2024.contents import to_content, to_user_message
from stint.october_2024.events import to_call_delta
from stint.october_2024.remote_tools import BUILT_IN
from stint.october_2024.schemas.inference import (
    OctoberChatChunk,
    OctoberChatEvent,
    OctoberChatRequest,
    OctoberCompletion,
    OctoberCompletionChunk,
    OctoberCompletionRequest,
    OctoberEmbeddingsRequest,
    OctoberTool,
)
from stint.october_2024.schemas.messages import (
    OctoberAnswer,
    OctoberMessage,
    OctoberSystemMessage,
    OctoberToolMessage,
)
from stint.october_2024.turns import from_answer


def to_chat_request(request: OctoberChatRequest) -> InferenceChatRequest:
    """Convert the request of a chat."""
    return InferenceChatRequest(
        model_id=request.model,
        messages=to_inference_messages(request.messages),
        sampling_params=to_sampling_params(request.sampling_params),
        tools=[to_inference_tool(tool) for tool in request.tools],
        tool_choice=ToolChoice(request.tool_choice) if request.tools else None,
        tool_prompt_format=request.tool_prompt_format,
        logprobs=request.logprobs,
        stream=request.stream,
    )


def to_completion_request(request: OctoberCompletionRequest) -> InferenceCompletionRequest:
    """Convert the request of a completion."""
    return InferenceCompletionRequest(
        model_id=request.model,
        content=to_content(request.content),
        sampling_params=to_sampling_params(request.sampling_params),
        logprobs=request.logprobs,
        stream=request.stream,
    )


def to_embeddings_request(request: OctoberEmbeddingsRequest) -> InferenceEmbeddingsRequest:
    """Convert contents to embed. The texts of a list are joined."""
    contents = [to_content(content) for content in request.contents]
    joined = [text_of(content) if isinstance(content, list) else content for content in contents]
    return InferenceEmbeddingsRequest(model_id=request.model, contents=joined)


def to_inference_tool(tool: OctoberTool) -> InferenceTool:
    """Convert a tool. A built-in one without parameters gets its own."""
    parameters = {name: ToolParamDefinition(**each.model_dump()) for name, each in (tool.parameters or {}).items()}
    if tool.parameters is None and tool.tool_name in BUILT_IN:
        name, description = BUILT_IN[tool.tool_name]
        parameters = {name: ToolParamDefinition(param_type="string", description=description)}
    return InferenceTool(tool_name=tool.tool_name, description=tool.description, parameters=parameters)


def to_inference_messages(messages: Sequence[OctoberMessage]) -> list[InferenceMessage]:
    """Convert messages. A result with an empty call id is that of the first call without a result."""
    converted: list[InferenceMessage] = []
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, OctoberAnswer):
            waiting = [call.call_id for call in message.tool_calls]
            converted.append(to_answer(message))
        elif isinstance(message, OctoberToolMessage):
            call_id = message.call_id or next(iter(waiting), "")
            waiting = [each for each in waiting if each != call_id]
            converted.append(ToolResponseMessage(call_id=call_id, content=to_content(message.content)))
        elif isinstance(message, OctoberSystemMessage):
            converted.append(SystemMessage(role="system", content=to_content(message.content)))
        else:
            converted.append(to_user_message(message))
    return converted


def to_answer(message: OctoberAnswer) -> CompletionMessageInput:
    calls = [
        ToolCall(call_id=call.call_id, tool_name=call.tool_name, arguments=call.arguments)
        for call in message.tool_calls
    ]
    return CompletionMessageInput(
        content=to_content(message.content), stop_reason=message.stop_reason, tool_calls=calls
    )


def to_safety_messages(messages: Sequence[OctoberMessage]) -> list[SafetyMessage]:
    """Convert messages for a shield."""
    converted = to_inference_messages(messages)
    return [
        CompletionMessage(content=each.content, stop_reason=each.stop_reason, tool_calls=each.tool_calls)
        if isinstance(each, CompletionMessageInput)
        else each
        for each in converted
    ]


def from_chat(response: ChatCompletionResponse) -> OctoberCompletion:
    """Convert the answer of a chat."""
    return OctoberCompletion(completion_message=from_answer(response.completion_message), logprobs=response.logprobs)


def from_completion(response: CompletionResponse) -> OctoberCompletion:
    """Convert the answer of a completion."""
    message = OctoberAnswer(content=response.content, stop_reason=response.stop_reason)
    return OctoberCompletion(completion_message=message, logprobs=response.logprobs)


async def from_chat_chunks(
    chunks: AsyncGenerator[ChatCompletionResponseStreamChunk, None],
) -> AsyncGenerator[OctoberChatChunk, None]:
    """Convert the events of a chat. An answer with calls ends with `end_of_turn`, as in the original."""
    async with aclosing(chunks):
        async for chunk in chunks:
            event = chunk.event
            delta = event.delta.text if isinstance(event.delta, TextDelta) else to_call_delta(event.delta)
            reason: StopReason | None = "end_of_turn" if event.stop_reason == "end_of_message" else event.stop_reason
            yield OctoberChatChunk(
                event=OctoberChatEvent(
                    event_type=event.event_type, delta=delta, logprobs=event.logprobs, stop_reason=reason
                )
            )


async def from_completion_chunks(
    chunks: AsyncGenerator[CompletionResponseStreamChunk, None],
) -> AsyncGenerator[OctoberCompletionChunk, None]:
    """Convert the events of a completion."""
    async with aclosing(chunks):
        async for chunk in chunks:
            yield OctoberCompletionChunk(delta=chunk.delta, stop_reason=chunk.stop_reason, logprobs=chunk.logprobs)
