"""The plan of a run: its model, tools, shields and limits.

It is made before the run starts, and never changes, so that each model call of the run is made in the same way and
begins with the same words: providers find these in their caches. What changes is in `Run`. A run that is resumed is
planned again.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stint.dataclasses import dataclass, replace
from stint.domain.context_management import ContextManagements
from stint.domain.inference import (
    AnswerFormat,
    Decoding,
    InferenceRequest,
    ModelMessage,
    PromptCache,
    ReasoningOptions,
    SystemText,
)
from stint.domain.token_estimates import CHARACTERS_PER_TOKEN, estimate_input, length_of
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

    It is also compacted when the model refuses it as too long, and before it is too long to be read again. `clean`
    returns a summary in the form that later runs can read.
    """

    threshold: int | None
    clean: Callable[[str], str] = str

    @classmethod
    def of(cls, managed: ContextManagements | None, clean: Callable[[str], str] = str) -> "CompactionRule | None":
        """Return the rule of a request or an agent; None if nothing is compacted."""
        return cls(managed[0].compact_threshold, clean) if managed else None

    def is_exceeded(self, tokens: int, older: Sequence[ModelMessage]) -> bool:
        """Return whether an input has too many tokens, of which `older` messages are a part that matters."""
        share = SMALLEST_SHARE * sum(map(length_of, older)) // CHARACTERS_PER_TOKEN
        return self.threshold is not None and tokens > self.threshold <= share


@dataclass(slots=True)
class InputLength:
    """The tokens of the next input of a run: an estimate, which the provider's count of the last input corrects."""

    estimated: int | None = None
    error: int = 0

    def estimate(self, request: InferenceRequest) -> int:
        self.estimated = estimate_input(request)
        return self.estimated + self.error

    def correct(self, counted: int) -> None:
        """Compare the last estimate with a provider's count."""
        self.error = counted - self.estimated if self.estimated is not None else 0


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings that all model calls of a run share."""

    model: ChatModel
    model_id: str
    """The provider's name of the model."""
    instructions: str
    """The first message of each model call; empty for none."""
    decoding: Decoding
    tool_config: ToolConfig
    toolbox: Toolbox
    max_infer_iters: int
    """Maximum model calls of the run."""
    response_format: AnswerFormat | None
    """The format as the provider gets it; None for free text."""
    answer_schema: dict[str, Any] | None
    """The JSON schema that the final answer is checked against; None if it is not checked."""
    input_shields: tuple[BoundShield, ...] = ()
    output_shields: tuple[BoundShield, ...] = ()
    shield_window: int | None = None
    """Characters of an answer between two checks of the output shields; None checks the whole answer once."""
    parallel_tool_calls: bool | None = None
    """False allows one call in an answer; None leaves it to the provider."""
    reasoning: ReasoningOptions | None = None
    verbosity: str | None = None
    max_output_tokens: int | None = None
    """Maximum output tokens of the whole run, without those of its own summaries."""
    max_tool_calls: int | None = None
    """Maximum calls that the server runs in the whole run, if below MAX_TOOL_CALLS."""
    shortens: bool = False
    """Whether the older part of a conversation that is too long for the model is dropped."""
    pauses_at_limit: bool = False
    """Whether a run at a limit of model calls or tokens waits for the client's calls of the last answer.

    A turn of the Agents API ends instead.
    """
    retriever: Retriever | None = None
    """Adds context before the first model call."""
    cache: PromptCache | None = None
    """A hint for the provider's cache of prompts; None for none."""
    cache_key: str = ""
    """The same for model calls that begin alike, for providers that have such a key."""
    service_tier: str | None = None
    """The tier that is asked for; None leaves it to the provider."""
    compaction: CompactionRule | None = None
    """When the history is compacted; None for never."""

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
            cache_key=self.cache_key,
            service_tier=self.service_tier,
        )
