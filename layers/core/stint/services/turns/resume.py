"""Resuming of a session's last turn, which waits for its client or is complete.

Only the last turn of a session can be resumed, because the history after any other one has been seen by the model:

    the last turn                       the responses                        the result
    awaits input                        answer its calls                     it goes on after a step with them
    awaits input                        lack a call, or have another one     InvalidRequest
    was resumed with the same ones      the same                             that step: the request is repeated
    was resumed with an approved call   the same                             Conflict: the call may have been sent
    awaits input                        approve a call of a changed tool     it goes on; the call has an error as result
    completed                           answer calls in the model's text     it goes on; only the client knows the calls
    completed                           have the id of an answered call      Conflict
    failed, cancelled, or runs          -                                    Conflict

The calls that a turn waits for have a record of their own, because Llama Stack's KV design has one. The log decides: a
record from before the last pause is stale.
"""

import logging
from collections.abc import Sequence, Set

from stint.dataclasses import replace
from stint.domain.errors import Conflict, StintError
from stint.domain.ids import new_id
from stint.domain.llama_stack.stored_turns import PendingCalls, StoredTurn, TurnRecord, unanswered_calls
from stint.domain.llama_stack.turns import ToolApproval, Turn, TurnResumeRequest
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.domain.schema import now
from stint.domain.steps import InferenceStep, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.tools import ToolResponse
from stint.loop.next_step import called_tools
from stint.loop.plan import Plan
from stint.loop.run import Log, Run
from stint.loop.toolbox import Toolbox
from stint.loop.transcript import Transcript
from stint.services.runs.run_handle import RequestContext
from stint.services.runs.webhook_events import NO_WEBHOOKS, TurnPlace, WebhookEvents
from stint.services.turns.tool_responses import REPLACED, ClientAnswer, check_new_responses, match_responses
from stint.services.turns.turn_log import calls_of_pause
from stint.store.session_leases import SessionLease
from stint.store.store import Store

logger = logging.getLogger(__name__)

MESSAGE_TAKEN = "message_taken"
"""The code of the error for a message that the last turn has."""

RESUMABLE = (RunStatus.awaiting_input, RunStatus.completed)


def not_waiting(turn: Turn) -> Conflict:
    """Make the error for a turn that cannot be resumed."""
    return Conflict(
        f"Turn {turn.turn_id} does not wait for tool responses: its status is {turn.status.value}. Only the last turn "
        "of a session can be resumed, while its status is awaiting_input or completed. Start a new turn.",
        code="turn_not_awaiting_input",
    )


def refuse_waiting(turn: StoredTurn | None) -> None:
    """Raise Conflict if a session's last turn waits for its client, as if it was running."""
    if turn is not None and turn.status is RunStatus.awaiting_input:
        raise Conflict(f"Turn {turn.header.turn_id} waits for the results of its client.", code="session_locked")


def refuse_taken(last: StoredTurn | None, context: RequestContext) -> None:
    """Raise Conflict if a session's last turn has a message of the request, unless this one repeats that turn."""
    taken = set(last.header.message_ids or ()) if last is not None else set[str]()
    if last is None or last.header.turn_id == context.attempt.retry_of or taken.isdisjoint(context.message_ids):
        return
    raise Conflict(f"Turn {last.header.turn_id} has a message of this request already.", code=MESSAGE_TAKEN)


def is_resumable(turn: StoredTurn, request: TurnResumeRequest) -> bool:
    """Return whether a turn can be resumed by a request, for the first time or again."""
    return turn.status in RESUMABLE or stored_answer(turn, request) is not None


def stored_answer(turn: StoredTurn, request: TurnResumeRequest) -> ClientAnswer | None:
    """Return the answer with which a turn was resumed; None if its last record is not this one, or approves a call."""
    records = [record for record in turn.records if not (record.fence or is_check(record.step))]
    ended, last = records[-2:] if len(records) > 1 else (None, None)
    if ended is None or ended.ending is None or ended.ending.status not in RESUMABLE:
        return None
    if last is None or last.ending is not None or not is_answer(last, request):
        return None
    if any(approval.approve for approval in last.approvals or ()):
        return None
    return ClientAnswer(last.step if isinstance(last.step, ToolExecutionStep) else None, last.approvals)


def is_answer(record: TurnRecord, request: TurnResumeRequest) -> bool:
    """Return whether a record has the answers of a request, except results that a shield has replaced."""
    if decisions_of(record.approvals) != decisions_of(request.approvals):
        return False
    decided = {each.call_id for each in record.approvals or ()}
    if not isinstance(record.step, ToolExecutionStep):
        return record.step is None and record.approvals is not None and not request.tool_responses
    stored = [response for response in record.step.tool_responses if response.call_id not in decided]
    by_id = {response.call_id: response for response in stored if (response.metadata or {}).get(REPLACED)}
    given = [by_id.get(response.call_id, response) for response in request.tool_responses]
    return sort_by_call(stored) == sort_by_call(given)


def decisions_of(approvals: Sequence[ToolApproval] | None) -> dict[str, tuple[object, ...]]:
    return {each.call_id: (each.approve, each.reason or None, each.input) for each in approvals or ()}


def is_check(step: Step | None) -> bool:
    """Return whether a step is the check of a tool's call or result."""
    return isinstance(step, ShieldCallStep) and step.metadata is not None


def sort_by_call(responses: Sequence[ToolResponse]) -> list[ToolResponse]:
    """Return responses in the order of their calls, without the tools' names, which are stored as in the calls."""
    unnamed = [response.model_copy(update={"tool_name": ""}) for response in responses]
    return sorted(unnamed, key=lambda response: response.call_id)


def answer_turn(
    turn: StoredTurn, earlier_calls: Set[str], noted: PendingCalls | None, request: TurnResumeRequest
) -> ClientAnswer:
    """Return what a request adds to a resumable turn. `earlier_calls` are the ids of the calls in the turns before it.

    Raises:
        InvalidRequest: the answers do not match the calls that the turn waits for, or there are none.
        Conflict: the turn is complete, and a call's id is in use.
    """
    waits, responses = turn.status is RunStatus.awaiting_input, request.tool_responses
    if request.approvals or (waits and turn.unapproved):
        return answer_approvals(turn, noted, request)
    if turn.ending is not None and waits:
        pending = waiting_calls(turn, turn.ending, noted)
        return ClientAnswer(answered_step(pending, match_responses(pending.tool_calls, responses)))
    check_new_responses(turn.header.turn_id, answered_ids(turn) | earlier_calls, responses)
    return ClientAnswer(answered_step(parsed_calls(turn, responses), responses))


def answer_approvals(turn: StoredTurn, noted: PendingCalls | None, request: TurnResumeRequest) -> ClientAnswer:
    """Return what a request with approvals adds to a turn. Raises InvalidRequest if they do not match its calls."""
    from stint.services.turns.approvals import (  # noqa: PLC0415 - few calls wait for approval
        answer_questions,
        deny,
        match_approvals,
    )

    waiting, pending = set[str](), None
    if turn.ending is not None and turn.status is RunStatus.awaiting_input:
        waiting, pending = {*(turn.unapproved or ())}, waiting_calls(turn, turn.ending, noted)
    calls = pending.tool_calls if pending else []
    decided = match_approvals([call for call in calls if call.call_id in waiting], request.approvals or [])
    if pending is None:
        return ClientAnswer(None)
    others = [call for call in calls if call.call_id not in waiting]
    results = {each.call_id: each for each in match_responses(others, request.tool_responses)}
    inputs = answer_questions(turn.asked_inputs, calls, decided)
    goes_on = {call.call_id for call, _ in inputs} | {each for each in waiting if decided[each].approve}
    approved = [call for call in calls if call.call_id in goes_on]
    denied = [call for call in calls if call.call_id in waiting - goes_on]
    results |= {call.call_id: deny(call, decided[call.call_id]) for call in denied}
    answered = [call for call in calls if call.call_id in results]
    answers = pending.model_copy(update={"tool_calls": answered})
    step = answered_step(answers, [results[call.call_id] for call in answered]) if answered else None
    return ClientAnswer(step, [*decided.values()], approved, inputs)


def withdraw_approvals(
    answer: ClientAnswer, turn: StoredTurn, noted: PendingCalls | None, toolbox: Toolbox
) -> ClientAnswer:
    """Return an answer whose approved calls do not run if their tools have changed since they began to wait."""
    from stint.services.turns.approvals import find_changed, refuse_changed  # noqa: PLC0415 - few calls wait for approval

    changed = find_changed(answer.approved, turn.asked_tools, toolbox)
    if not changed or turn.ending is None:
        return answer
    pending, step = waiting_calls(turn, turn.ending, noted), answer.step
    results = {each.call_id: each for each in (*(step.tool_responses if step else ()), *map(refuse_changed, changed))}
    answered = [call for call in pending.tool_calls if call.call_id in results]
    answers = pending.model_copy(update={"tool_calls": answered})
    given = answered_step(answers, [results[call.call_id] for call in answered])
    return replace(answer, step=given, approved=[call for call in answer.approved if call.call_id not in results])


def answered_ids(turn: StoredTurn) -> set[str]:
    """Return the ids of a turn's answered calls."""
    steps = (step for step in turn.steps if isinstance(step, ToolExecutionStep))
    return {response.call_id for step in steps for response in step.tool_responses}


def parsed_calls(turn: StoredTurn, responses: list[ToolResponse]) -> PendingCalls:
    """Return the calls that the responses to a completed turn answer.

    Calls that the client parsed from the model's text are known only by their results, as in Llama Stack.
    """
    given = {response.call_id for response in responses}
    calls = [call for call in unanswered_calls(turn.steps) if call.call_id in given]
    return PendingCalls(turn_id=turn.header.turn_id, step_id=new_id(), started_at=now(), tool_calls=calls)


def waiting_calls(turn: StoredTurn, pause: RunOutcome, noted: PendingCalls | None) -> PendingCalls:
    """Return the calls that a paused turn waits for. A record from before its last pause is stale."""
    pending = calls_of_pause(turn.header.turn_id, turn.steps, pause)
    return noted if noted is not None and noted.tool_calls == pending.tool_calls else pending


def answered_step(pending: PendingCalls, responses: list[ToolResponse]) -> ToolExecutionStep:
    """Make the step of the client's results. It started when the turn paused."""
    return ToolExecutionStep(
        turn_id=pending.turn_id,
        step_id=pending.step_id,
        started_at=pending.started_at,
        completed_at=now(),
        tool_calls=pending.tool_calls,
        tool_responses=responses,
    )


def resumed_run(
    turn: StoredTurn,
    answer: ClientAnswer,
    plan: Plan,
    transcript: Transcript,
    log: Log,
    deadline: float,
    checks: list[ShieldCallStep],
) -> Run:
    """Continue a paused turn with its usage so far, after the client's results and their checks.

    Approved calls run first. They count as not sent until they start.
    """
    iterations = sum(isinstance(step, InferenceStep) for step in turn.steps)
    run = Run(turn.header.turn_id, plan, transcript, log, deadline, iterations=iterations, usage=turn.usage)
    run.checks, run.called = checks, called_tools([*turn.steps, *([answer.step] if answer.step else [])])
    run.approved, run.unsent = [*answer.approved], {call.call_id for call in answer.approved}
    return run


async def cancel_waiting(
    store: Store, lease: SessionLease, last: StoredTurn | None, webhooks: WebhookEvents = NO_WEBHOOKS
) -> None:
    """Cancel a session's last turn if it waits for its client, because the client starts another one."""
    if last is None or last.ending is None or last.status is not RunStatus.awaiting_input:
        return
    ending = last.ending.model_copy(update={"status": RunStatus.cancelled, "completed_at": now()})
    turn_id = last.header.turn_id
    lease.forget_last()
    records = await store.turns.seal(lease, turn_id, ending)
    await forget_calls(store, lease, turn_id)
    await webhooks.turn_ended(TurnPlace(lease.agent_id, lease.session_id, turn_id), ending.status, records)


async def forget_calls(store: Store, lease: SessionLease, turn_id: str) -> None:
    """Delete the record of the calls that a turn waited for. A failure is only logged, as no one reads it."""
    try:
        await store.turns.delete_pending(lease, turn_id)
    except StintError as error:
        logger.warning("A record of answered calls was not removed", extra={"error": error.message})
