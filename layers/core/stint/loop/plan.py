"""The plan of a run: its model, tools, shields and limits."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from stint.domain.inference import AnswerFormat, Decoding, InferenceRequest, ModelMessage, ReasoningOptions, SystemText
from stint.domain.tools import ToolChoice, ToolConfig
from stint.loop.screening import BoundShield
from stint.loop.toolbox import Toolbox
from stint.models.port import ChatModel


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about a run's model calls that does not change from one to the next.

    `max_output_tokens` and `max_tool_calls` bound the run as a whole. A plan that `shortens` leaves out the older part
    of a conversation that is too long for the model. At `max_infer_iters`, one that `pauses_at_limit` still leaves
    calls of the last answer to the client; the turns of the Agents API end there.
    """

    model: ChatModel
    model_id: str
    instructions: str
    decoding: Decoding
    tool_config: ToolConfig
    toolbox: Toolbox
    max_infer_iters: int
    response_format: AnswerFormat | None
    answer_schema: dict[str, Any] | None
    input_shields: tuple[BoundShield, ...]
    output_shields: tuple[BoundShield, ...]
    shield_window: int | None
    parallel_tool_calls: bool | None = None
    reasoning: ReasoningOptions | None = None
    verbosity: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    shortens: bool = False
    pauses_at_limit: bool = False

    @property
    def calls_at_once(self) -> int | None:
        """Tell how many calls of one answer count; None when all do."""
        return 1 if self.parallel_tool_calls is False else None

    def request(
        self, messages: Iterable[ModelMessage], max_tokens: int | None = None, *, called: bool = False
    ) -> InferenceRequest:
        """Make the model call that follows these messages; `max_tokens` wins over the plan's own.

        `called` tells that tools were called before in this turn (with its resumes) or in this response. A choice that
        obliges the model to call one is satisfied then: kept up, it would forbid the model to answer, and every run
        with tools of the server would go on to its last iteration. Results that a request brings along do not count:
        with OpenAI's API, each request that asks for a call gets one.
        """
        system = (SystemText(self.instructions),) if self.instructions else ()
        choice = self.tool_config.tool_choice
        return InferenceRequest(
            model=self.model_id,
            messages=(*system, *messages),
            tools=self.toolbox.signatures,
            tool_choice=ToolChoice.auto if called and choice is not ToolChoice.none else choice,
            decoding=self.decoding if max_tokens is None else replace(self.decoding, max_tokens=max_tokens),
            response_format=self.response_format,
            parallel_tool_calls=self.parallel_tool_calls,
            reasoning=self.reasoning,
            verbosity=self.verbosity,
        )
