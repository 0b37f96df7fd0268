"""Inference of the API of October 2024, without an agent."""

from typing import Annotated, Any, Literal

from pydantic import Field

from stint.domain.limits import ToolLimit
from stint.domain.llama_stack.embeddings import MOST_CONTENTS
from stint.domain.llama_stack.inference import LogProbConfig, TokenLogProbs
from stint.domain.schema import Request, Schema
from stint.domain.steps import StopReason
from stint.october_2024.schemas.agents import OctoberParameter, OctoberSamplingParams, ToolChoiceOfOctober
from stint.october_2024.schemas.messages import OctoberAnswer, OctoberContent, OctoberMessages
from stint.october_2024.schemas.turns import OctoberToolCallDelta


class OctoberTool(Request):
    """A tool that the client runs. A built-in tool needs only its name."""

    tool_name: str = Field(min_length=1)
    description: str | None = None
    parameters: dict[str, OctoberParameter] | None = None


class OctoberInferenceOptions(Request):
    model: str = Field(min_length=1)
    sampling_params: OctoberSamplingParams = Field(default_factory=OctoberSamplingParams)
    logprobs: LogProbConfig | None = None
    stream: bool = False


class OctoberChatRequest(OctoberInferenceOptions):
    messages: OctoberMessages
    tools: Annotated[list[OctoberTool], ToolLimit] = Field(default_factory=list)
    tool_choice: ToolChoiceOfOctober = "auto"
    tool_prompt_format: Literal["json", "function_tag", "python_list"] | None = None


class OctoberCompletionRequest(OctoberInferenceOptions):
    content: OctoberContent


class OctoberEmbeddingsRequest(Request):
    model: str
    contents: Annotated[list[OctoberContent], Field(max_length=MOST_CONTENTS)]


class OctoberCompletion(Schema):
    """The answer of a chat or a completion."""

    completion_message: OctoberAnswer
    logprobs: list[TokenLogProbs] | None = None


class OctoberChatEvent(Schema):
    event_type: Literal["start", "progress", "complete"]
    delta: str | OctoberToolCallDelta
    logprobs: list[TokenLogProbs] | None = None
    stop_reason: StopReason | None = None


class OctoberChatChunk(Schema):
    """The data of an event of a chat."""

    event: OctoberChatEvent


class OctoberCompletionChunk(Schema):
    """The data of an event of a completion."""

    delta: str
    stop_reason: StopReason | None = None
    logprobs: list[TokenLogProbs] | None = None


class LogEventRequest(Request):
    """An event of the caller: a log message, a metric, or the start or end of a span."""

    event: dict[str, Any]


class TraceName(Request):
    trace_id: str
