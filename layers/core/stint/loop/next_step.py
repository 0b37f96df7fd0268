"""Decision about the next step after an answer of the model.

    the answer                                         the next step
    was cut short (length, content filter, budget)     Finish with the reason: its last call may be incomplete
    has no calls                                       Finish
    would need a model call that a limit prevents      Finish with the limit
    has calls of the client only, without shields      AwaitClient
    has calls of the server                            RunTools, then a model call
    has calls of both                                  RunTools, then AwaitClient
    has more calls than `max_tool_calls` leaves        RunTools with the first ones, then Finish; without any, Finish

A process that continues an interrupted run decides about each call of the last answer:

    its step is stored               nothing
    its result was stored early      the result becomes its step
    the tool choice forbids it       it was never sent; its step tells the model so
    it is repeatable                 it is sent, perhaps again
    any other                        it may have taken effect and is not sent; its step tells the model so

A call of the last answer may have been sent as soon as the answer is stored. A call that the client has approved was
sent if the log has a mark of it.

Every call gets a step, also one that does not run, because providers refuse a conversation with an unanswered call.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from stint.dataclasses import dataclass, field
from stint.domain.ids import new_id
from stint.domain.inference import FinishReason
from stint.domain.run_outcome import IncompleteReason, RunOutcome, RunStatus
from stint.domain.schema import now
from stint.domain.steps import InferenceStep, Step, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolChoice, ToolResponse
from stint.loop.answer import Answer
from stint.loop.run import Run
from stint.loop.transcript import SENT


@dataclass(frozen=True, slots=True)
class Finish:
    """The run is complete, or was cut short."""

    incomplete: IncompleteReason | None = None


@dataclass(frozen=True, slots=True)
class AwaitClient:
    """The run waits for the client to answer tool calls."""


@dataclass(frozen=True, slots=True)
class RunTools:
    """The server runs calls, followed by `then`, or by a model call.

    Calls for the client are among them if their arguments are checked before the client gets them. `known` has the
    steps of calls that must not run, by the calls' ids: an earlier process has sent them, a shield has blocked them, or
    the tool choice forbids them.
    """

    calls: list[ToolCall]
    then: Finish | AwaitClient | None = None
    known: Mapping[str, ToolExecutionStep] = field(default_factory=dict)


NextStep = Finish | AwaitClient | RunTools


def decide(run: Run, answer: Answer) -> NextStep:
    """Return the next step after an answer of the model."""
    if reason := cut_short(answer):
        return Finish(reason)
    if not answer.calls:
        return Finish()
    toolbox, refused = run.plan.toolbox, answer.refused
    server = [call for call in answer.calls if call.call_id in refused or not toolbox.is_for_client(call)]
    pauses = len(server) < len(answer.calls)
    if limit := limit_reached(run, pauses=pauses):
        return Finish(limit)
    # The client gets a call only when its arguments are checked, so such calls go through RunTools.
    clients = [call for call in answer.calls if call.call_id not in refused and toolbox.is_for_client(call)]
    checked = [call for call in clients if toolbox.shields_of(call).input]
    if not server and not checked:
        return AwaitClient()
    allowed = server[: run.tool_calls_left()]
    if len(allowed) < len(server):
        finish = Finish("max_tool_calls")
        return RunTools(allowed, finish, refused_steps(run, allowed, refused)) if allowed else finish
    run_here = {call.call_id for call in (*server, *checked)}
    calls = [call for call in answer.calls if call.call_id in run_here]
    return RunTools(calls, AwaitClient() if pauses else None, refused_steps(run, calls, refused))


def limit_reached(run: Run, *, pauses: bool) -> IncompleteReason | None:
    """Return the limit that prevents another model call, which results of tools would need.

    A run that `pauses` for the client needs none.
    """
    # The client's calls can still be handed over: the results come with a new request, which has its own limit.
    if pauses and run.plan.pauses_at_limit:
        return None
    if run.iterations >= run.plan.max_infer_iters:
        return "max_infer_iters"
    return "max_output_tokens" if run.output_tokens_left() == 0 else None


def remaining_calls(
    run: Run,
    calls: Sequence[ToolCall],
    answered: Collection[str],
    early: Mapping[str, ToolExecutionStep],
    refused: Collection[str] = (),
) -> RunTools:
    """Return the next step of an interrupted run, given the ids of the answered calls, and the early results.

    All other calls may have been sent, except the `refused` ones.
    """
    server = [call for call in calls if call.call_id in refused or not run.plan.toolbox.is_for_client(call)]
    # `run.tool_calls` counts the answered ones, which are among `server` here.
    allowed = server[: run.tool_calls_left() + len(answered)]
    then: Finish | AwaitClient | None = AwaitClient() if len(server) < len(calls) else None
    if len(allowed) < len(server):
        then = Finish("max_tool_calls")
    left = [call for call in allowed if call.call_id not in answered]
    known = known_steps(run, left, early, {call.call_id for call in left}.difference(refused))
    return RunTools(left, then if calls else Finish(), refused_steps(run, left, refused) | known)


def known_steps(
    run: Run, calls: Sequence[ToolCall], early: Mapping[str, ToolExecutionStep], sent: Collection[str]
) -> dict[str, ToolExecutionStep]:
    """Return the steps of calls that must not run: those with a result, and those that may have taken effect."""
    once = [call for call in calls if call.call_id in sent and not run.plan.toolbox.is_repeatable(call)]
    unknown = {call.call_id: unknown_result(run.run_id, call) for call in once}
    # An early result comes last: a result is known even for a call that may not be sent again.
    return unknown | {call.call_id: early[call.call_id] for call in calls if call.call_id in early}


def refused_steps(run: Run, calls: Iterable[ToolCall], refused: Collection[str]) -> dict[str, ToolExecutionStep]:
    """Return the steps of calls that the tool choice forbids. They tell the model so."""
    wanted = run.plan.tool_config.tool_choice
    steps: dict[str, ToolExecutionStep] = {}
    for call in calls:
        if call.call_id in refused:
            text = f"{call.tool_name!r} did not run, because tool_choice requires a call of {wanted!r}. Call it first."
            if wanted is ToolChoice.none:
                text = f"There is no tool named {call.tool_name!r} to call, because tool_choice is none."
            steps[call.call_id] = failed_step(run.run_id, call, text)
    return steps


def unknown_result(run_id: str, call: ToolCall) -> ToolExecutionStep:
    """Return the step of a call that was sent by a process that died."""
    return failed_step(run_id, call, SENT)


def failed_step(run_id: str, call: ToolCall, text: str) -> ToolExecutionStep:
    """Return the step of a call with a message for the model in place of a result."""
    response = ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=text, metadata={"error": True})
    at = now()
    return ToolExecutionStep(
        turn_id=run_id,
        step_id=new_id(),
        started_at=at,
        completed_at=at,
        tool_calls=[call],
        tool_responses=[response],
    )


def cut_short(answer: Answer) -> IncompleteReason | None:
    """Return the reason why an answer was cut short, so that none of its calls is run."""
    if answer.finish is FinishReason.content_filter:
        return "content_filter"
    if answer.finish is FinishReason.budget:
        return "budget"
    return "max_output_tokens" if answer.finish is FinishReason.length else None


def status_after(next_step: Finish | AwaitClient) -> RunStatus:
    return RunStatus.completed if isinstance(next_step, Finish) else RunStatus.awaiting_input


def ending_of(run: Run, next_step: NextStep | None) -> RunOutcome | None:
    """Return the ending for the record before the next step; None if more records follow."""
    match next_step:
        case Finish(incomplete=reason):
            return run.make_outcome(RunStatus.completed, incomplete_reason=reason)
        case AwaitClient():
            return run.make_outcome(RunStatus.awaiting_input)
        case _:
            return None


def called_tools(steps: Iterable[Step]) -> set[str]:
    """Return the names of the tools that were called in some steps."""
    names: set[str] = set()
    for step in steps:
        if isinstance(step, InferenceStep):
            names.update(call.tool_name for call in step.model_response.tool_calls)
        elif isinstance(step, ToolExecutionStep):
            names.update(response.tool_name for response in step.tool_responses)
    return names
