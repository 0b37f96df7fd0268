"""A model's answer, assembled from its chunks as they arrive.

Text is passed on at once, calls when they are complete. Callers see reasoning up to the first word of the answer; what
comes later is kept for its provider only.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from stint.dataclasses import dataclass, field
from stint.domain.ids import new_id, new_name
from stint.domain.inference import (
    DEFAULT_TIER,
    AnswerDetails,
    Finished,
    FinishReason,
    ModelChunk,
    Reasoning,
    ReasoningChunk,
    RefusalChunk,
    TextChunk,
    ToolCallChunk,
    Usage,
)
from stint.domain.json_text import parse_json
from stint.domain.run_events import (
    Delta,
    ReasoningEnded,
    ReasoningProgress,
    RefusalDelta,
    StepProgress,
    TextDelta,
    ToolCallDelta,
    call_delta,
)
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage, InferenceStep, StepUsage, StopReason
from stint.domain.text_lengths import encode_lengths
from stint.domain.tools import ToolCall


@dataclass(slots=True)
class PartialCall:
    call_id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """An answer so far. Its chunks come from `Inference.read`, in a storable form."""

    run_id: str
    max_calls: int | None = None
    """Maximum calls. Further ones are dropped: a model may ignore the limit of its request."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """The names of tools, by other names that models use for them."""
    step_id: str = field(default_factory=new_id)
    started_at: datetime = field(default_factory=now)
    text: list[str] = field(default_factory=list)
    """The pieces of the text, or of a refusal, as the model sent them."""
    calls: list[ToolCall] = field(default_factory=list)
    """The complete calls. They are complete at the end of the answer only."""
    call_ids: set[str] = field(default_factory=set)
    """The ids of `calls`, to recognize duplicates."""
    finish: FinishReason | None = None
    """Why the answer ended; None before its end."""
    usage: Usage | None = None
    """None if the provider counts nothing."""
    service_tier: str | None = None
    """The tier that served, as the provider reports it."""
    partial: dict[int, PartialCall] = field(default_factory=dict)
    """The calls by the provider's index."""
    thoughts: list[ReasoningChunk] = field(default_factory=list)
    """Reasoning before the first word of the answer."""
    late: list[str] = field(default_factory=list)
    """Signatures of later reasoning, which only the provider reads."""
    thought: bool = False
    """Whether something other than reasoning has arrived."""
    refusal: bool = False
    """Whether the text is a refusal."""
    streamed: list[int] = field(default_factory=list)
    """The lengths of the pieces of text that were released, in characters."""
    refused: set[str] = field(default_factory=set)
    """The ids of calls that the tool choice forbids."""
    cuts: list[int] = field(default_factory=list)
    """The places before which messages were dropped, one after the other, because the model refused them as too
    long."""
    first_token_ms: int | None = None
    """Milliseconds from the request to the first token; None before the end."""
    dollars: float | None = None
    """What the call cost; None before the end, or if that is not known."""

    @property
    def begun(self) -> bool:
        """Return whether any part of the answer has arrived."""
        return bool(self.text or self.partial or self.finish or self.thoughts or self.late)

    def add_chunk(self, chunk: ModelChunk) -> Iterator[Delta | ReasoningProgress | ReasoningEnded]:
        """Add a chunk, and return its deltas.

        Callers see reasoning before the first word of the answer only. Later pieces are kept if a provider needs them.
        """
        if not isinstance(chunk, ReasoningChunk) and not self.thought:
            self.thought = True
            if (reasoning := self.reasoning()) is not None and (shown := reasoning.shown) is not None:
                yield ReasoningEnded(self.step_id, shown)
        match chunk:
            case TextChunk(text=text) if text:
                self.text.append(text)
                yield RefusalDelta(text=text) if self.refusal else TextDelta(text=text)
            case RefusalChunk(text=text) if text:
                # A refusal after ordinary text stays text: callers have got the answer as text by then.
                self.refusal = self.refusal or not self.text
                self.text.append(text)
                yield RefusalDelta(text=text) if self.refusal else TextDelta(text=text)
            case ReasoningChunk(signature=signature, late=True):
                self.late.append(signature)
            case ReasoningChunk() if not self.thought:
                self.thoughts.append(chunk)
                if chunk.text:
                    yield ReasoningProgress(self.step_id, chunk.text)
            case ToolCallChunk():
                self.extend_call(chunk)
            case Finished():
                yield from self.complete_calls()
                self.finish, self.usage, self.service_tier = chunk.reason, chunk.usage, chunk.service_tier
                self.dollars = chunk.dollars

    def extend_call(self, chunk: ToolCallChunk) -> None:
        call = self.partial.setdefault(chunk.index, PartialCall())
        # An id counts once, however often it is repeated. A name may come in pieces.
        call.call_id = call.call_id or chunk.call_id
        call.name += chunk.name
        call.arguments.append(chunk.arguments)

    def complete_calls(self) -> Iterator[Delta]:
        """Complete the calls in the order of their indexes. Providers may interleave the pieces of several calls."""
        for index in sorted(self.partial)[: self.max_calls]:
            yield self.complete_call(self.partial[index])

    def complete_call(self, partial: PartialCall) -> ToolCallDelta:
        partial.name = self.aliases.get(partial.name, partial.name)
        call = parse_call(partial, self.call_ids)
        self.calls.append(call)
        self.call_ids.add(call.call_id)
        return call_delta(call)

    def reasoning(self) -> Reasoning | None:
        """Return the reasoning; None if there is none."""
        if not self.thoughts and not self.late:
            return None
        reasoning = Reasoning(
            text="".join(chunk.text for chunk in self.thoughts),
            signature="".join(chunk.signature for chunk in self.thoughts),
            redacted="".join(chunk.redacted for chunk in self.thoughts),
            late="".join(self.late),
        )
        return reasoning if reasoning != Reasoning() else None

    def details(self) -> AnswerDetails | None:
        """Return the details of the answer that a step lacks; None if there are none."""
        filtered = self.finish is FinishReason.content_filter
        details = AnswerDetails(
            reasoning=self.reasoning(),
            refusal=self.refusal,
            filtered=filtered,
            refused=sorted(self.refused) or None,
            cuts=self.cuts or None,
            service_tier=None if self.service_tier == DEFAULT_TIER else self.service_tier,
            text_lengths=encode_lengths(self.streamed),
            reasoning_lengths=encode_lengths(len(chunk.text) for chunk in self.thoughts if chunk.text),
        )
        return details if details != AnswerDetails() else None

    def progress(self, delta: Delta) -> StepProgress:
        """Return the event of a released delta."""
        if isinstance(delta, TextDelta):
            self.streamed.append(len(delta.text))
        return StepProgress(step_type="inference", step_id=self.step_id, delta=delta)

    def to_step(self) -> InferenceStep:
        """Return the whole answer as a step."""
        cut = self.finish is not None and self.finish.is_out_of_tokens
        stop_reason: StopReason = "out_of_tokens" if cut else "end_of_turn"
        message = CompletionMessage(content="".join(self.text), stop_reason=stop_reason, tool_calls=self.calls)
        return InferenceStep(
            turn_id=self.run_id,
            step_id=self.step_id,
            started_at=self.started_at,
            completed_at=now(),
            model_response=message,
            first_token_ms=self.first_token_ms,
            usage=None if self.usage is None else StepUsage.of(self.usage, self.dollars),
        )


def parse_call(partial: PartialCall, taken: set[str]) -> ToolCall:
    """Make a call from its pieces. It gets a new id if the model sent none or a duplicate."""
    call_id = partial.call_id if partial.call_id and partial.call_id not in taken else new_name("call")
    text = "".join(partial.arguments)
    try:
        arguments: Any = parse_json(text) if text.strip() else {}
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return ToolCall(call_id=call_id, tool_name=partial.name, arguments=text, arguments_json=text)
    return ToolCall(call_id=call_id, tool_name=partial.name, arguments=arguments, arguments_json=text or "{}")
