"""The trace of a turn."""

from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.stored_turns import StoredTurn
from stint.domain.messages import InputMessage, UserMessage
from stint.domain.run_outcome import RunStatus
from stint.domain.traces import TraceDocument
from stint.services.traces.run_spans import (
    RunSpans,
    SpanTimes,
    TracedRun,
    TraceMessage,
    make_message,
    make_result_message,
)
from stint.services.traces.trace_form import TraceForm

ENDED = (RunStatus.completed, RunStatus.failed, RunStatus.cancelled)


def has_ended(turn: StoredTurn) -> bool:
    """Return whether a turn has ended. One that waits for its client has not."""
    return turn.status in ENDED


def make_trace(turn: StoredTurn, agent_id: str, config: AgentConfig, form: TraceForm) -> TraceDocument:
    """Return the trace of a turn that has ended: a root span, and one or more for each of its steps."""
    return form.fit(lambda characters: make_spans(turn, agent_id, config, form, characters).to_document(), turn.size)


def make_spans(turn: StoredTurn, agent_id: str, config: AgentConfig, form: TraceForm, characters: int) -> RunSpans:
    header, ending, shown = turn.header, turn.ending, turn.to_turn()
    # Shields check the client's results before the header is made.
    started_at = min([header.started_at, *(step.started_at for step in shown.steps)])
    ended_at = ending.completed_at if ending else header.started_at
    error = ending.error if ending else None
    run = TracedRun(header.turn_id, config.model, header.session_id, started_at, ended_at)
    spans = RunSpans(run, form, characters)
    attributes = {"gen_ai.agent.id": agent_id, "stint.status": shown.status.value}
    said = [to_message(message) for message in shown.input_messages]
    answer = shown.output_message
    answered = [make_message("assistant", answer.content, answer.tool_calls)] if answer.content else []
    spans.add_root(config.name, attributes, shown.usage, error, (said, answered))
    compacting = {record.step.step_id for record in turn.records if record.compaction and record.step}
    for step in shown.steps:
        if step.step_id in compacting:
            spans.add_compaction(step.step_id, SpanTimes(step.started_at, step.completed_at))
        else:
            spans.add_step(step)
    unfinished = turn.records[-1].unfinished if turn.records else None
    if unfinished is not None:
        spans.add_unfinished(unfinished, error)
    return spans


def to_message(message: InputMessage) -> TraceMessage:
    """Return a message of a turn in OpenTelemetry's form."""
    if isinstance(message, UserMessage):
        return make_message("user", message.content)
    return make_result_message(message.call_id, message.content)
