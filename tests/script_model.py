"""A scripted model and a run in memory, for tests of the loop and of the use cases."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from stint.domain.content import Content, text_of
from stint.domain.inference import (
    AnswerDetails,
    AssistantAnswer,
    Decoding,
    Finished,
    FinishReason,
    InferenceRequest,
    ModelChunk,
    ModelMessage,
    SystemText,
    TextChunk,
    ToolCallChunk,
    ToolSignature,
    UserInput,
)
from stint.domain.llama_stack.events import Event, TurnAwaitingInput, TurnComplete, TurnFailed, TurnStart
from stint.domain.llama_stack.stored_turns import TurnRecord
from stint.domain.run_events import RunEnded, StepComplete, StepProgress, StepStart, TextDelta, ToolCallDelta
from stint.domain.run_outcome import RunOutcome
from stint.domain.steps import MemoryRetrievalStep, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.stored_messages import CompactedHistory
from stint.domain.tools import ToolConfig
from stint.loop.plan import Plan
from stint.loop.run import Run
from stint.loop.toolbox import Toolbox
from stint.loop.transcript import Transcript
from stint.models.port import ChatModel

Part = ModelChunk | Exception | asyncio.Event


STOP = Finished(FinishReason.stop)


CALLED = Finished(FinishReason.tool_calls)


def said(text: str = "Hi") -> list[Part]:
    return [TextChunk(text), STOP]


def called(*names: str, text: str = "", arguments: str = "{}") -> list[Part]:
    """Return an answer with calls of tools; the call ids are c0, c1 and so on."""
    calls = [ToolCallChunk(place, f"c{place}", name, arguments) for place, name in enumerate(names)]
    return [*([TextChunk(text)] if text else []), *calls, CALLED]


@dataclass
class Script:
    """A model that returns one answer after the other. It waits for an Event in an answer, and raises an exception."""

    answers: list[list[Part]]
    requests: list[InferenceRequest] = field(default_factory=list)
    closed: int = 0
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    def check(self, request: InferenceRequest) -> None:
        pass

    async def count_tokens(self, request: InferenceRequest) -> int:
        return len(request.messages)

    async def stream(self, request: InferenceRequest) -> AsyncGenerator[ModelChunk, None]:
        answer = self.answers[len(self.requests)]
        self.requests.append(request)
        self.opened.set()
        try:
            for part in answer:
                if isinstance(part, asyncio.Event):
                    await part.wait()
                elif isinstance(part, Exception):
                    raise part
                else:
                    yield part
        finally:
            self.closed += 1


def script(*answers: list[Part]) -> Script:
    return Script(list(answers))


def words_of(message: ModelMessage) -> str:
    """Return the text of a message."""
    return message.text if isinstance(message, SystemText | AssistantAnswer) else text_of(message.content)


def shape(events: list[Any]) -> list[str]:
    """Return a short description of each event."""
    return [word_for(event) for event in events]


def word_for(event: Event | RunEnded) -> str:
    match event:
        case StepProgress(delta=TextDelta(text=text)):
            return f"text {text}"
        case StepProgress(delta=ToolCallDelta(parse_status=status)):
            return f"call {status}"
        case StepStart(step_type=kind):
            return f"start {kind}"
        case StepComplete(step_type=kind):
            return f"complete {kind}"
        case TurnStart():
            return "turn_start"
        case TurnFailed(error=error):
            return f"failed {error.code}"
        case RunEnded():
            return f"ended {event.status.value}"
        case TurnComplete() | TurnAwaitingInput():
            return event.event_type
    raise TypeError(type(event))


class ListLog:
    """A log in memory, for tests of the loop."""

    def __init__(self) -> None:
        self.records: list[TurnRecord] = []
        self.kept: list[Content] = []
        self.sent: list[str] = []
        self.waiting: list[UserInput] = []

    async def append(
        self, step: Step | None, ending: RunOutcome | None = None, details: AnswerDetails | None = None, /
    ) -> None:
        self.records.append(TurnRecord(step=step, ending=ending))

    def check(self) -> None:
        pass

    async def append_compaction(self, step: MemoryRetrievalStep, compaction: CompactedHistory, /) -> None:
        self.records.append(TurnRecord(step=step, compaction=compaction))

    async def append_early(self, steps: Sequence[ToolExecutionStep | ShieldCallStep], /) -> None:
        self.records.append(TurnRecord(early=[*steps]))

    async def mark_sent(self, call_ids: Sequence[str], /, *, approved: bool) -> None:
        self.sent += call_ids if approved else []

    async def take_input(self, transcript: Transcript, /) -> bool:
        added, self.waiting = self.waiting, []
        for message in added:
            transcript.append_message(message)
        return bool(added)

    async def store_result(self, content: Content) -> str:
        self.kept.append(content)
        return f"blob-{len(self.kept)}"


def run_of(
    model: ChatModel, *, tools: tuple[str, ...] = (), iters: int = 10, seconds: float = 30, log: Any = None
) -> Run:
    toolbox = Toolbox({name: ToolSignature(name, "", {}) for name in tools})
    plan = Plan(model, "m", "", Decoding(), ToolConfig(), toolbox, iters, None, None, (), (), None)
    return Run("t", plan, Transcript(), log or ListLog(), asyncio.get_running_loop().time() + seconds)


def deadline(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def until(condition: Callable[[], Any], seconds: float = 30) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition is changed outside of this loop
            await asyncio.sleep(0.005)


async def collect(events: AsyncIterator[Any], into: list[Any] | None = None) -> list[Any]:
    """Read all events. After an exception, `into` has the events before it."""
    seen = [] if into is None else into
    async for event in events:
        seen.append(event)
    return seen
