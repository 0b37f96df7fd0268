"""Compaction of the history of a run before a model call that it is too long for.

A model's summary replaces all messages but the newest: those that the model has not answered, and the user's messages
that led to them. It is stored before it is announced, so that every process sees the same messages from then on. A
summary that fails changes nothing: the model call then succeeds or fails as it would have without.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence

from stint.domain.errors import (
    Cancelled,
    ContextLengthExceeded,
    DeadlineExceeded,
    Interrupted,
    ShieldFailed,
    StintError,
    Stopped,
    TooLarge,
)
from stint.domain.ids import new_id
from stint.domain.inference import AssistantAnswer, SystemText, Usage, UserInput
from stint.domain.run_events import CompactionComplete, StepEvent, StepStart
from stint.domain.schema import now
from stint.domain.steps import MemoryRetrievalStep
from stint.domain.stored_messages import CompactedHistory, StoredMessage
from stint.domain.token_estimates import length_of
from stint.loop.model_call import with_deadline
from stint.loop.plan import CompactionRule
from stint.loop.run import Run
from stint.loop.summaries import Summarizer
from stint.loop.transcript import Transcript

logger = logging.getLogger(__name__)

LONGEST_REQUEST = 64_000
"""Characters of the user's earlier messages that are kept with the results that they led to."""
MAX_BYTES = 2_000_000
"""Maximum bytes of JSON of the newest messages. A later request must be able to read them with others."""
ENDINGS = (Cancelled, DeadlineExceeded, Interrupted, Stopped)
"""Errors that end a run, whatever it does at the time."""


async def compact_if_due(run: Run, rule: CompactionRule) -> AsyncGenerator[StepEvent, None]:
    """Compact the history before the next model call if that is too long, or if the model refuses it as too long."""
    if run.keeps_history:
        return
    due = run.inference is None and run.compacts_first
    if not due and (not run.transcript.older_messages or not await is_refused(run)):
        return
    step_id, started_at = new_id(), now()
    try:
        compaction = await make_compaction(run, rule)
    except ENDINGS:
        raise
    except StintError as error:
        extra = {"error_code": error.code, "error": error.message}
        run.keeps_history = True
        logger.warning("The history was not compacted: the model call has all of it", extra=extra)
        return
    step = MemoryRetrievalStep(
        turn_id=run.run_id,
        step_id=step_id,
        started_at=started_at,
        completed_at=now(),
        vector_db_ids="",
        inserted_context=compaction.text,
    )
    # Here as in the record, so that another process that continues the run would make the same model call.
    run.transcript.compact(compaction)
    run.history_is_full = False
    await run.log.append_compaction(step, compaction)
    yield StepStart(step_type=step.step_type, step_id=step_id)
    yield CompactionComplete(step_type=step.step_type, step_id=step_id, step_details=step, compaction=compaction)


async def is_refused(run: Run) -> bool:
    """Open the next model call, and return whether the model refuses it as too long. It is then closed."""
    first = run.open_inference().first
    await with_deadline(run.deadline, asyncio.wait({first}))
    if not isinstance(first.exception(), ContextLengthExceeded):
        return False
    await run.close_inference()
    return True


async def make_compaction(run: Run, rule: CompactionRule) -> CompactedHistory:
    """Let the run's model summarize the history. The usage counts even if the summary fails.

    Raises:
        StintError: the newest messages are too large, the model failed, or an output shield blocks the summary.
    """
    transcript, plan = run.transcript, run.plan
    older = transcript.older_messages
    newest = (*request_of(transcript, len(older)), *transcript.messages[len(older) :])
    messages = [*map(StoredMessage.of, newest)]
    if sum(len(message.to_json(exclude_none=True)) for message in messages) > MAX_BYTES:
        raise TooLarge(f"The newest messages have more than {MAX_BYTES:,} bytes.")
    summarizer = Summarizer(
        plan.model,
        plan.model_id,
        plan.instructions,
        "the newest messages after it",
        deadline=run.deadline,
        service_tier=plan.service_tier,
        cache_key=plan.cache_key,
    )
    try:
        summary = rule.clean(await summarizer.summarize(older))
    finally:
        used = summarizer.usage or Usage()
        if summarizer.usage is not None:
            # Counted in the usage, but not in `max_output_tokens`, which limits what the caller gets.
            run.usage = (run.usage or Usage()) + used
            run.summary_tokens += used.output_tokens
    check = run.output_check()
    if check is not None and (await check(AssistantAnswer(summary))).violation is not None:
        raise ShieldFailed("An output shield blocks the summary of the history.")
    return CompactedHistory(
        summary=summary,
        instructions=[message.text for message in older if isinstance(message, SystemText)],
        messages=messages,
        output_tokens=used.output_tokens,
    )


def request_of(transcript: Transcript, end: int) -> Sequence[UserInput]:
    """Return the user's messages that led to the messages from `end` on, if these do not have them."""
    messages = transcript.messages
    asked = [message for message in messages[transcript.own : end] if isinstance(message, UserInput)]
    if asked or any(isinstance(message, UserInput) for message in messages[end:]):
        return asked
    last = end
    while last > transcript.compacted and not isinstance(messages[last - 1], UserInput):
        last -= 1
    for first in reversed(range(transcript.compacted, last)):
        message = messages[first]
        if not isinstance(message, UserInput):
            break
        asked.insert(0, message)
    return asked if sum(map(length_of, asked)) <= LONGEST_REQUEST else ()
