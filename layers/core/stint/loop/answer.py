"""A model's answer, assembled from its chunks as they arrive."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from stint.dataclasses import dataclass, field
from stint.domain.errors import ModelError
from stint.domain.ids import new_id
from stint.domain.inference import (
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
from stint.domain.limits import MAX_ANSWER_CHARACTERS
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
from stint.domain.steps import CompletionMessage, InferenceStep, StopReason
from stint.domain.text_lengths import encode_lengths
from stint.domain.tools import ToolCall
from stint.models.port import characters_of


@dataclass(slots=True)
class PartialCall:
    call_id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """An answer so far. `usage` is None if the provider counts nothing.

    Only the first `max_calls` calls count. `streamed` has the lengths of the pieces of text that were released,
    `length` is the number of characters that the model sent.
    """

    run_id: str
    max_calls: int | None = None
    step_id: str = field(default_factory=new_id)
    started_at: datetime = field(default_factory=now)
    text: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    call_ids: set[str] = field(default_factory=set)
    finish: FinishReason | None = None
    usage: Usage | None = None
    partial: dict[int, PartialCall] = field(default_factory=dict)
    thoughts: list[ReasoningChunk] = field(default_factory=list)
    thought: bool = False
    refusal: bool = False
    streamed: list[int] = field(default_factory=list)
    length: int = 0

    @property
    def begun(self) -> bool:
        """Return whether any part of the answer has arrived."""
        return bool(self.text or self.partial or self.finish or self.thoughts)

    def add_chunk(self, chunk: ModelChunk) -> Iterator[Delta | ReasoningProgress | ReasoningEnded]:
        """Add a chunk, and return its deltas. Reasoning after the first word of the answer is dropped.

        Raises ModelError if the answer has more than MAX_ANSWER_CHARACTERS.
        """
        self.length += characters_of(chunk)
        if self.length > MAX_ANSWER_CHARACTERS:
            raise ModelError(
                f"The model's answer has more than {MAX_ANSWER_CHARACTERS:,} characters, the maximum. Limit its tokens."
            )
        if not isinstance(chunk, ReasoningChunk) and not self.thought:
            self.thought = True
            if (reasoning := self.reasoning()) is not None:
                yield ReasoningEnded(self.step_id, reasoning)
        match chunk:
            case TextChunk():
                if text := storable(chunk.text):
                    self.text.append(text)
                    yield RefusalDelta(text=text) if self.refusal else TextDelta(text=text)
            case RefusalChunk():
                if text := storable(chunk.text):
                    self.refusal = self.refusal or not self.text
                    self.text.append(text)
                    yield RefusalDelta(text=text) if self.refusal else TextDelta(text=text)
            case ReasoningChunk() if not self.thought:
                self.thoughts.append(chunk)
                if chunk.text:
                    yield ReasoningProgress(self.step_id, storable(chunk.text))
            case ToolCallChunk():
                self.extend_call(chunk)
            case Finished():
                yield from self.complete_calls()
                self.finish, self.usage = chunk.reason, chunk.usage

    def extend_call(self, chunk: ToolCallChunk) -> None:
        call = self.partial.setdefault(chunk.index, PartialCall())
        call.call_id = call.call_id or storable(chunk.call_id)
        call.name += storable(chunk.name)
        call.arguments.append(storable(chunk.arguments))

    def complete_calls(self) -> Iterator[Delta]:
        """Complete the calls in the order of their indexes. Providers may interleave the pieces of several calls."""
        for index in sorted(self.partial)[: self.max_calls]:
            yield self.complete_call(self.partial[index])

    def complete_call(self, partial: PartialCall) -> ToolCallDelta:
        call = parse_call(partial, self.call_ids)
        self.calls.append(call)
        self.call_ids.add(call.call_id)
        return call_delta(call)

    def reasoning(self) -> Reasoning | None:
        """Return the reasoning; None if there is none."""
        if not self.thoughts:
            return None
        return Reasoning(
            text=storable("".join(chunk.text for chunk in self.thoughts)),
            signature="".join(chunk.signature for chunk in self.thoughts),
            redacted="".join(chunk.redacted for chunk in self.thoughts),
        )

    def details(self) -> AnswerDetails | None:
        """Return the details of the answer that a step lacks; None if there are none."""
        filtered = self.finish is FinishReason.content_filter
        details = AnswerDetails(
            reasoning=self.reasoning(),
            refusal=self.refusal,
            filtered=filtered,
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
        )


def storable(text: str) -> str:
    """Replace single surrogates, which JSON can contain and UTF-8 cannot."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def parse_call(partial: PartialCall, taken: set[str]) -> ToolCall:
    """Make a call from its pieces. It gets a new id if the model sent none or a duplicate."""
    call_id = partial.call_id if partial.call_id and partial.call_id not in taken else f"call_{new_id()}"
    text = "".join(partial.arguments)
    try:
        arguments: Any = parse_json(text) if text.strip() else {}
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        return ToolCall(call_id=call_id, tool_name=partial.name, arguments=text, arguments_json=text)
    return ToolCall(call_id=call_id, tool_name=partial.name, arguments=arguments, arguments_json=text or "{}")
