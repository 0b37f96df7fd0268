"""Inference without an agent: requests, answers, and the events of a stream.

The objects of Llama Stack's routes of inference, which also have batches. A model call of them is an `InferenceRequest`
of `stint.domain.inference`, as for all APIs.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from stint.domain.content import Content
from stint.domain.inference import ResponseFormat, Usage
from stint.domain.limits import MAX_MESSAGES, PartLimit, ToolLimit
from stint.domain.llama_stack.registrations import SystemMessage
from stint.domain.llama_stack.sampling import SamplingParams
from stint.domain.messages import UserMessage
from stint.domain.run_events import Delta
from stint.domain.schema import Request, Schema
from stint.domain.steps import CompletionMessage, StopReason
from stint.domain.tools import (
    ToolCall,
    ToolChoice,
    ToolChoiceOrName,
    ToolConfig,
    ToolPromptFormat,
    ToolResponseMessage,
)

MAX_BATCH = 20
"""Maximum entries of a batch. Each is a model call."""

MAX_TOP_LOGPROBS = 20
"""Maximum alternatives of a token (OpenAI, "top_logprobs")."""


class CompletionMessageInput(Request):
    """An earlier answer of the model."""

    role: Literal["assistant"] = "assistant"
    content: Content = ""
    stop_reason: StopReason = "end_of_turn"
    tool_calls: list[ToolCall] = Field(default_factory=list)


InferenceMessage = Annotated[
    UserMessage | SystemMessage | ToolResponseMessage | CompletionMessageInput, Field(discriminator="role")
]
InferenceMessages = Annotated[list[InferenceMessage], Field(min_length=1, max_length=MAX_MESSAGES), PartLimit]


class ToolParamDefinition(Request):
    param_type: str
    description: str | None = None
    required: bool = True
    default: Any | None = None


class InferenceTool(Request):
    """A tool that the client runs."""

    tool_name: str = Field(min_length=1)
    description: str | None = None
    parameters: dict[str, ToolParamDefinition] = Field(default_factory=dict)


class LogProbConfig(Request):
    """Log probabilities of the answer's tokens. `top_k`: those of the most likely alternatives, too."""

    top_k: int = Field(default=0, ge=0, le=MAX_TOP_LOGPROBS)


class InferenceOptions(Request):
    """The options of every inference request."""

    model_id: str = Field(min_length=1)
    sampling_params: SamplingParams = Field(default_factory=SamplingParams)
    response_format: ResponseFormat | None = None
    logprobs: LogProbConfig | None = None


class ChatOptions(InferenceOptions):
    """The options of a chat. `tool_choice` and `tool_prompt_format` are deprecated forms of `tool_config`."""

    tools: Annotated[list[InferenceTool], ToolLimit] = Field(default_factory=list)
    tool_choice: ToolChoice | None = None
    tool_prompt_format: ToolPromptFormat | None = None
    tool_config: ToolConfig | None = None

    @model_validator(mode="after")
    def refuse_contradiction(self) -> "ChatOptions":
        for key in ("tool_choice", "tool_prompt_format"):
            value = getattr(self, key)
            if value is not None and self.tool_config is not None and value != getattr(self.tool_config, key):
                raise ValueError(f"{key} is deprecated. Use {key} in tool_config instead.")
        return self

    @property
    def choice(self) -> ToolChoiceOrName:
        if self.tool_config is not None:
            return self.tool_config.tool_choice
        return self.tool_choice or ToolChoice.auto

    @property
    def replaces_system_message(self) -> bool:
        return self.tool_config is not None and self.tool_config.system_message_behavior == "replace"


class InferenceChatRequest(ChatOptions):
    """The body of POST /inference/chat-completion."""

    messages: InferenceMessages
    stream: bool = False


class BatchChatRequest(ChatOptions):
    """The body of POST /inference/batch-chat-completion."""

    messages_batch: Annotated[list[InferenceMessages], Field(max_length=MAX_BATCH)]


class InferenceCompletionRequest(InferenceOptions):
    """The body of POST /inference/completion."""

    content: Content
    stream: bool = False


class BatchCompletionRequest(InferenceOptions):
    """The body of POST /inference/batch-completion."""

    content_batch: Annotated[list[Content], Field(max_length=MAX_BATCH)]


class TokenLogProbs(Schema):
    """The log probability of a token, and of its alternatives, at one position."""

    logprobs_by_token: dict[str, float]


class MetricInResponse(Schema):
    metric: Literal["prompt_tokens", "completion_tokens", "total_tokens"]
    value: float
    unit: str | None = "tokens"


def metrics_of(usage: Usage | None) -> list[MetricInResponse] | None:
    """Return the token counts of an answer; None if the provider counts nothing."""
    if usage is None:
        return None
    return [
        MetricInResponse(metric="prompt_tokens", value=usage.input_tokens),
        MetricInResponse(metric="completion_tokens", value=usage.output_tokens),
        MetricInResponse(metric="total_tokens", value=usage.total_tokens),
    ]


class ChatCompletionResponse(Schema):
    metrics: list[MetricInResponse] | None = None
    completion_message: CompletionMessage
    logprobs: list[TokenLogProbs] | None = None


class ChatCompletionResponseEvent(Schema):
    event_type: Literal["start", "progress", "complete"]
    delta: Delta
    logprobs: list[TokenLogProbs] | None = None
    stop_reason: StopReason | None = None


class ChatCompletionResponseStreamChunk(Schema):
    """The data of an event of a chat."""

    metrics: list[MetricInResponse] | None = None
    event: ChatCompletionResponseEvent


class CompletionResponse(Schema):
    metrics: list[MetricInResponse] | None = None
    content: str
    stop_reason: StopReason
    logprobs: list[TokenLogProbs] | None = None


class CompletionResponseStreamChunk(Schema):
    """The data of an event of a completion."""

    metrics: list[MetricInResponse] | None = None
    delta: str
    stop_reason: StopReason | None = None
    logprobs: list[TokenLogProbs] | None = None


class BatchChatCompletionResponse(Schema):
    batch: list[ChatCompletionResponse]


class BatchCompletionResponse(Schema):
    batch: list[CompletionResponse]
