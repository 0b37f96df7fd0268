"""The plan of a run: its model, tools, shields and limits."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stint.dataclasses import dataclass, replace
from stint.domain.inference import (
    AnswerFormat,
    Decoding,
    InferenceRequest,
    ModelMessage,
    PromptCache,
    ReasoningOptions,
    SystemText,
)
from stint.domain.token_estimates import CHARACTERS_PER_TOKEN, length_of
from stint.domain.tools import ToolChoice, ToolConfig
from stint.loop.retrieval import Retriever
from stint.loop.screening import BoundShield
from stint.loop.toolbox import Toolbox
from stint.models.port import ChatModel

SMALLEST_SHARE = 8
"""A history below this fraction of the threshold is not compacted: the rest of the input exceeds it."""


@dataclass(frozen=True, slots=True)
class CompactionRule:
    """When the history is compacted: when the input of a model call has more than `threshold` tokens.

    It is also compacted when the model refuses it as too long, and before it reaches `max_bytes` of JSON, of which the
    oldest would not be read again. `clean` returns a summary in the form that later runs can read.
    """

    threshold: int | None
    max_bytes: int
    clean: Callable[[str], str] = str

    def is_exceeded(self, tokens: int, older: Sequence[ModelMessage], history_bytes: int) -> bool:
        """Return whether an input has too many tokens, or its history too many bytes, and without `older` has fewer."""
        if not older:
            return False
        share = SMALLEST_SHARE * sum(map(length_of, older)) // CHARACTERS_PER_TOKEN
        if self.threshold is not None and tokens > self.threshold <= share:
            return True
        return 4 * history_bytes > 3 * self.max_bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings that all model calls of a run share.

    `max_output_tokens` and `max_tool_calls` limit the whole run. With `shortens`, the older part of a conversation that
    is too long for the model is dropped. At `max_infer_iters`, a run that `pauses_at_limit` still waits for the
    client's calls of the last answer; a turn of the Agents API ends. The `retriever` adds context before the first
    model call.
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
    retriever: Retriever | None = None
    cache: PromptCache | None = None
    compaction: CompactionRule | None = None

    @property
    def calls_at_once(self) -> int | None:
        """Return the maximum number of calls in one answer; None if there is none."""
        return 1 if self.parallel_tool_calls is False else None

    def request(
        self,
        messages: Iterable[ModelMessage],
        max_tokens: int | None = None,
        tool_choice: ToolChoice | str | None = None,
    ) -> InferenceRequest:
        """Make the next model call for these messages. `max_tokens` and `tool_choice` override those of the plan."""
        system = (SystemText(self.instructions),) if self.instructions else ()
        return InferenceRequest(
            model=self.model_id,
            messages=(*system, *messages),
            tools=self.toolbox.signatures,
            tool_choice=self.tool_config.tool_choice if tool_choice is None else tool_choice,
            decoding=self.decoding if max_tokens is None else replace(self.decoding, max_tokens=max_tokens),
            response_format=self.response_format,
            parallel_tool_calls=self.parallel_tool_calls,
            reasoning=self.reasoning,
            verbosity=self.verbosity,
            cache=self.cache,
        )
