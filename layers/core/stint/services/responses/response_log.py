"""The log of a running response, in the store or only in memory.

Each step and each ending is stored before its event is sent. The order of writes at the end of a response:

| write                         | if the process dies after it                                                    |
|-------------------------------|---------------------------------------------------------------------------------|
| the record with the ending    | the next holder or reader of the conversation adds the items                    |
| the items of the conversation | the lease lapses; the items are not added twice, because their ids are the same |
| the release of all leases     | nothing is left to do                                                           |

The ending comes first because the log alone decides how a response ended. A process that lost its lease, and does not
know it, finds the key of its record taken and gets Interrupted before it has added anything to the conversation. With
`store: false` the log is in memory, and only the leases are checked.
"""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from stint.caller import NO_ATTEMPT, RequestAttempt, end_users_of
from stint.dataclasses import dataclass, field
from stint.domain.content import Content, StoredResult, text_of
from stint.domain.errors import NotFound, StintError, StoreUnavailable
from stint.domain.inference import AnswerDetails, Usage
from stint.domain.openai.stored_responses import (
    ResponseError,
    ResponseHeader,
    ResponseOutcome,
    ResponseRecord,
    ResponseStatus,
    StoredResponse,
)
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.domain.session_budgets import SessionLedger
from stint.domain.steps import InferenceStep, MemoryRetrievalStep, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.stored_messages import CompactedHistory
from stint.loop.lease_keeper import LeaseKeeper, Renewable, lease_span
from stint.loop.transcript import Transcript
from stint.metering import read_meter
from stint.services.responses.conversation_writer import ConversationWriter
from stint.services.runs.webhook_events import NO_WEBHOOKS, WebhookEvents
from stint.store.items import Item, write_units
from stint.store.responses import ResponseStore

if TYPE_CHECKING:
    from stint.store.waiting_line import WaitingLine

logger = logging.getLogger(__name__)

STATUS = {
    RunStatus.completed: ResponseStatus.completed,
    RunStatus.awaiting_input: ResponseStatus.completed,
    RunStatus.failed: ResponseStatus.failed,
    RunStatus.cancelled: ResponseStatus.cancelled,
}


@dataclass(slots=True)
class ResponseLog:
    """Writes a response under its leases, and keeps the stored state in `response`."""

    tenant: str
    store: ResponseStore | None
    """Without it, nothing is written."""

    response: StoredResponse
    conversation: ConversationWriter | None = None
    """Adds items after the ending is stored."""

    keepers: list[LeaseKeeper[Renewable]] = field(default_factory=list)
    """They renew the leases of its conversation and event."""

    lease: LeaseKeeper[Renewable] | None = None
    """The worker's lease of a background response."""

    renewal: LeaseKeeper[Renewable] | None = None
    """Renews the lease of a foreground response for readers. The log decides whether this process may write."""

    used: Callable[[], Usage | None] = lambda: None
    """Returns the usage so far, which the next record has for the process that resumes or ends the response."""

    skipped: int | None = None
    """The output indexes of interrupted items, which the next record has, too."""

    sources: Mapping[str, str] = field(default_factory=dict)
    """The names of the files that were found before, by their ids."""

    make_line: "Callable[[], WaitingLine] | None" = None
    """Makes the line of messages for the conversation."""

    attempt: RequestAttempt = NO_ATTEMPT
    """A retry finds the response by it."""

    ledger: SessionLedger | None = None
    """The budget of the conversation; None if it has none."""

    webhooks: WebhookEvents = NO_WEBHOOKS
    """Announces the ending. The worker announces that of a background response, with its completion event."""

    @property
    def response_id(self) -> str:
        return self.response.header.response_id

    @property
    def details(self) -> AnswerDetails | None:
        """Return the details in the last record."""
        return self.response.records[-1].details if self.response.records else None

    async def put_header(self, lease: Renewable, seconds: float, deadline: float) -> None:
        """Write the first record of a new response, and renew its lease of `seconds` until the deadline.

        The header has the end of the first lease, so that a short response needs no record of its lease.
        """
        if self.store is None:
            return
        asked, span = asyncio.get_running_loop().time(), lease_span(seconds, deadline)
        self.response.header.until = math.ceil(time.time() + span)
        try:
            await self.store.put(self.tenant, self.response.header, end_users(self.response.header), self.attempt)
        except StoreUnavailable as error:
            if error.unsure:
                error.response_id = self.response_id
            raise
        self.renewal = LeaseKeeper(lease, seconds, deadline, asked + span)

    async def append(
        self, step: Step | None, ending: RunOutcome | None = None, details: AnswerDetails | None = None, /
    ) -> None:
        """Store a record. With an ending, release the conversation's lease before this returns.

        Raises:
            Interrupted: a lease was lost, or another process ended the response.
        """
        record = ResponseRecord(
            step=step,
            details=details,
            cited=self.find_cited(step),
            skipped=self.skipped or None,
            usage=self.used() if isinstance(step, InferenceStep) and not ending else None,
            consumption=read_meter(1) if self.response.header.background and not ending else None,
            ending=ending_of(ending) if ending else None,
        )
        await self.write(record)

    async def append_compaction(self, step: MemoryRetrievalStep, compaction: CompactedHistory, /) -> None:
        """Store a compaction, with the id of its step and its end. Raises Interrupted as `append`."""
        consumption = read_meter(1) if self.response.header.background else None
        record = ResponseRecord(compaction=compaction, skipped=self.skipped or None, usage=self.used())
        record.compaction_id, record.compacted_at = step.step_id, step.completed_at
        record.consumption = consumption
        await self.write(record)

    async def append_early(self, steps: Sequence[ToolExecutionStep | ShieldCallStep], /) -> None:
        """Store results before their turn in the model's order. Raises Interrupted as `append`."""
        results = [step for step in steps if isinstance(step, ToolExecutionStep)]
        await self.write(ResponseRecord(early=results, skipped=self.skipped or None))

    async def take_input(self, transcript: Transcript, /) -> bool:
        """Take the requests of the same caller that wait for the conversation. Raises Interrupted as `append`."""
        if self.make_line is None:
            return False
        from stint.services.responses.merging import append_merged, take_requests  # noqa: PLC0415 - few are merged

        async with take_requests(self.make_line(), self.response, self.skipped or 0) as merged:
            if merged:
                await self.write(ResponseRecord(merged=merged, skipped=self.skipped or None))
        for each in merged:
            append_merged(transcript, each)
        return bool(merged)

    async def mark_sent(self, call_ids: Sequence[str], /, *, approved: bool) -> None:
        """Store that approved calls are sent, for the worker that resumes a background response.

        A response that is not stored notes it in the record of its request's idempotency key, if it has one.
        """
        mark = self.attempt.mark_sent
        if self.store is None and mark is not None:
            await mark()
        if approved and self.response.header.background:
            await self.write(ResponseRecord(sent=[*call_ids], skipped=self.skipped or None))

    def find_cited(self, step: Step | None) -> dict[str, str] | None:
        """Return the earlier files that the text of a step cites; None without markers."""
        if not self.sources or not isinstance(step, InferenceStep):
            return None
        from stint.services.responses.citations import cited_in  # noqa: PLC0415 - few responses search files

        return cited_in(text_of(step.model_response.content), self.sources)

    async def write(self, record: ResponseRecord) -> None:
        """Store a record unchanged. Raises as `append` does."""
        self.check()
        if self.ledger is not None:
            record.spent = self.ledger.pack()
        items = await self.pack_items(record)  # before the record, whose consumption includes their write units
        if record.ending is not None:
            units = len(self.all_keepers) + (self.store is not None) + sum(map(write_units, items))
            record.ending.consumption = read_meter(units)
        if self.store is not None:
            place = len(self.response.records)
            expires_at = self.response.header.expires_at
            await self.store.append(self.tenant, self.response_id, place, record, expires_at)
        self.response.records.append(record)
        self.skipped = None
        if record.ending is not None:
            await self.finish(items)
            await self.announce()

    async def announce(self) -> None:
        """Announce the ending of a stored response in the foreground."""
        if self.store is not None and not self.response.header.background and not self.webhooks.knows_none():
            await self.webhooks.response_ended(self.response_id, self.response.status)

    async def pack_items(self, record: ResponseRecord) -> Sequence[Item]:
        """Return the records of the conversation's new items, if the response ends with this record."""
        if record.ending is None or self.conversation is None:
            return []
        header, records = self.response.header, self.response.records
        return await self.conversation.pack_items(StoredResponse(header, [*records, record]))

    async def finish(self, items: Sequence[Item]) -> None:
        """Add the items of an ended response to its conversation, and release all leases.

        If this fails, the lease of the conversation lapses, and its next holder or reader adds the items.
        """
        try:
            self.check()
            if self.conversation is not None:
                await self.conversation.put_items(items)
        except NotFound:
            logger.info("The conversation was deleted before its items were added")
        except StintError as error:
            extra = {"response_id": self.response_id, "error": error.message}
            logger.warning("The items were not added: a reader of the conversation adds them", extra=extra)
            await self.lapse()
            return
        await self.release()

    def check(self) -> None:
        """Check that all leases are valid. Raises Interrupted."""
        for keeper in self.all_keepers:
            keeper.check()

    async def store_result(self, content: Content) -> str:
        """Store a result that is too long for a record. With `store: false`, nothing is stored."""
        if self.store is None:
            return ""
        body = content.encode() if isinstance(content, str) else StoredResult(content=content).to_json()
        expires = self.response.header.expires_at is not None
        return await self.store.put_body(self.tenant, self.response_id, body, expires=expires)

    @property
    def all_keepers(self) -> list[LeaseKeeper[Renewable]]:
        return [*self.keepers, *([self.lease] if self.lease is not None else [])]

    async def release(self) -> None:
        """Release all leases, because the response has ended. The lease of a foreground response needs no release."""
        if self.renewal is not None:
            self.renewal.stop()
        for keeper in self.all_keepers:
            await keeper.release()

    async def lapse(self) -> None:
        """Let the leases lapse: the response has not ended, but this process no longer runs it."""
        for keeper in self.keepers:
            await keeper.lapse()

    def stop(self) -> None:
        for keeper in [*self.all_keepers, *([self.renewal] if self.renewal is not None else [])]:
            keeper.stop()


def end_users(header: ResponseHeader) -> list[str]:
    """Return the end users of a new response."""
    return end_users_of(header.settings.safety_identifier, header.settings.user)


def ending_of(ending: RunOutcome) -> ResponseOutcome:
    """Convert the end of a run to the ending of its response. A response that waits for its client is complete.

    Missing counts are 0, because clients of a completed response read its usage.
    """
    status = ResponseStatus.incomplete if ending.incomplete_reason else STATUS[ending.status]
    error = ending.error
    return ResponseOutcome(
        status=status,
        completed_at=int(time.time()) if status is ResponseStatus.completed else None,
        usage=ending.usage or (None if status is ResponseStatus.failed else Usage()),
        error=ResponseError(**error.model_dump(include={"code", "message", "type"}), param=error.param or "")
        if error
        else None,
        incomplete_reason=ending.incomplete_reason,
    )
