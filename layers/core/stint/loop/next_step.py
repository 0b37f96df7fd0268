"""What follows an answer of the model."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stint.domain.inference import FinishReason
from stint.domain.run_outcome import IncompleteReason, TurnEnding, TurnStatus
from stint.domain.tools import ToolCall
from stint.loop.answer import Answer
from stint.loop.run import Run


@dataclass(frozen=True, slots=True)
class Stop:
    """The run is complete, or was cut short."""

    incomplete: IncompleteReason | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    """The client has tool calls to answer."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The server runs calls; then comes `then`, or the model goes on."""

    calls: list[ToolCall]
    then: Stop | Pause | None = None


NextMove = Stop | Pause | Answers


def decide(run: Run, answer: Answer) -> NextMove:
    """Tell what follows an answer of the model."""
    if reason := cut_short(answer):
        return Stop(reason)
    if not answer.calls:
        return Stop()
    server = [call for call in answer.calls if not run.plan.toolbox.is_for_client(call)]
    pauses = len(server) < len(answer.calls)
    if limit := limit_reached(run, pauses=pauses):
        return Stop(limit)
    if not server:
        return Pause()
    allowed = server[: run.tool_calls_left()]
    if len(allowed) < len(server):
        stop = Stop("max_tool_calls")
        return Answers(allowed, stop) if allowed else stop
    return Answers(server, Pause() if pauses else None)


def limit_reached(run: Run, *, pauses: bool) -> IncompleteReason | None:
    """Return the limit that forbids the model call that results of tools would need.

    A run that `pauses` for the client needs none.
    """
    if pauses and run.plan.pauses_at_limit:
        return None
    if run.iterations >= run.plan.max_infer_iters:
        return "max_infer_iters"
    return "max_output_tokens" if run.output_tokens_left() == 0 else None


def what_is_left(run: Run, calls: Sequence[ToolCall], answered: Collection[str]) -> Answers:
    """Tell what follows an answer whose run broke off when some of its calls, by their ids, were answered."""
    server = [call for call in calls if not run.plan.toolbox.is_for_client(call)]
    allowed = server[: run.tool_calls_left() + len(answered)]
    then: Stop | Pause | None = Pause() if len(server) < len(calls) else None
    if len(allowed) < len(server):
        then = Stop("max_tool_calls")
    return Answers([call for call in allowed if call.call_id not in answered], then if calls else Stop())


def cut_short(answer: Answer) -> IncompleteReason | None:
    """Tell what broke an answer off; none of its calls is run."""
    if answer.finish is FinishReason.content_filter:
        return "content_filter"
    return "max_output_tokens" if answer.finish is FinishReason.length else None


def status_after(move: Stop | Pause) -> TurnStatus:
    return TurnStatus.completed if isinstance(move, Stop) else TurnStatus.awaiting_input


def ending_of(run: Run, move: NextMove | None) -> TurnEnding | None:
    """Give the ending that the record before a move carries; None when more records follow."""
    match move:
        case Stop(incomplete=reason):
            return run.end(TurnStatus.completed, incomplete_reason=reason)
        case Pause():
            return run.end(TurnStatus.awaiting_input)
        case _:
            return None
