"""The log of a running turn: its records in the store, and its entry in the session.

Each step and each ending is stored before its event is sent. The deltas of a step are sent while it runs:

| write                  | before                        | because                                               |
|------------------------|-------------------------------|-------------------------------------------------------|
| header                 | the first event               | a retry, or a reader, finds the turn                  |
| calls that wait        | the record with the pause     | a client that sees the pause may answer at once       |
| record of a step       | the event that it is complete | whoever rejoins gets the same steps                   |
| record with the ending | the release of the lease      | the next turn reads a history that ends with this one |
| release of the lease   | the last event                | a client may start the next turn at once              |

A record has the index after the last one as its key. A process that lost the session without knowing it finds that key
taken by the seal of its successor, and gets Interrupted: that is the fence, which needs no transaction.

The lease remembers where the history ends, so that the next turn need not read it. While a write is under way nobody
knows where that is, so the lease forgets it before, and gets it back only after a success.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass, field
from stint.domain.content import Content, StoredResult
from stint.domain.errors import StoreUnavailable
from stint.domain.ids import new_id
from stint.domain.inference import AnswerDetails
from stint.domain.llama_stack.stored_turns import PendingCalls, StoredTurn, TurnRecord, unanswered_calls
from stint.domain.run_outcome import RunOutcome, RunStatus
from stint.domain.steps import MemoryRetrievalStep, ShieldCallStep, Step, ToolExecutionStep
from stint.domain.stored_messages import CompactedHistory
from stint.domain.tools import ToolCall
from stint.loop.lease_keeper import LeaseKeeper
from stint.loop.running_step import RunningStep
from stint.loop.toolbox import Toolbox
from stint.loop.transcript import Transcript
from stint.metering import ENDING_UNITS, read_meter
from stint.services.runs.partial_writer import PartialStorage, make_storage
from stint.services.runs.webhook_events import NO_WEBHOOKS, TurnPlace, WebhookEvents
from stint.services.turns.history import add_merged
from stint.services.turns.session_recorder import SessionRecorder
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.store import Store
from stint.store.turns import TurnStore

if TYPE_CHECKING:
    from stint.services.turns.tool_responses import ClientAnswer
    from stint.store.keys import PartialPlace
    from stint.store.waiting_line import WaitingLine


@dataclass(slots=True)
class TurnLog:
    """Writes a turn under the lease of its session, and keeps in `turn` what is stored.

    `make_line` makes the line of messages that wait for a session. `recorder` records the turn's end after that is
    stored, and `webhooks` announces it. `running` is the step that is streamed. `toolbox` tells which calls wait for
    approval.
    """

    store: TurnStore
    keeper: LeaseKeeper[SessionLease]
    turn: StoredTurn
    make_line: "Callable[[str, str, str], WaitingLine]"
    recorder: SessionRecorder | None = None
    webhooks: WebhookEvents = NO_WEBHOOKS
    running: RunningStep = field(default_factory=RunningStep)
    toolbox: Toolbox = field(default_factory=Toolbox)

    async def put_header(self) -> None:
        """Write the first record of a new turn.

        Raises:
            Interrupted: the session was lost.
        """
        self.keeper.check()
        with self.writing():
            size = await self.store.put_header(self.keeper.lease, self.turn.header)
        self.turn.size += size
        self.mark_last()

    async def append(
        self, step: Step | None, ending: RunOutcome | None = None, details: AnswerDetails | None = None, /
    ) -> None:
        """Store a record; with an ending the session is free again when this returns.

        Raises:
            Interrupted: the session was lost, or another process ended the turn.
        """
        self.keeper.check()
        found = details or AnswerDetails()
        record = TurnRecord(step=step, ending=ending, text_lengths=found.text_lengths, unsent=found.unsent)
        record.unannounced = found.unannounced
        if (kept := found.reasoning) is not None and (kept.signature or kept.redacted or kept.late):
            record.reasoning = kept
        if step is None:
            record.unfinished = self.running.whole()
        if ending is not None and ending.status is RunStatus.awaiting_input:
            # Before the pause: if the process dies in between, the turn fails, and nobody reads the calls.
            waiting = await self.put_pending(step, ending)
            inputs, approvals = found.asked or {}, self.toolbox.approvals
            if asked := [call for call in waiting if call.tool_name in approvals or call.call_id in inputs]:
                from stint.services.turns.approvals import fingerprint_tools, show_args  # noqa: PLC0415 - few calls wait

                record.unapproved = [call.call_id for call in asked]
                names = {call.tool_name for call in asked}
                record.asked_tools = fingerprint_tools(self.toolbox, names)
                record.asked_args = show_args(self.toolbox, names)
                record.asked_inputs = found.asked
        if ending is not None:
            ending.consumption = read_meter(ENDING_UNITS)
        await self.write(record)
        if ending is not None:
            await self.end()

    async def append_answer(self, answer: "ClientAnswer", /) -> None:
        """Store what a client has sent to resume the turn. Raises Interrupted as `append`."""
        self.keeper.check()
        await self.write(TurnRecord(step=answer.step, approvals=answer.approvals))

    async def append_compaction(self, step: MemoryRetrievalStep, compaction: CompactedHistory, /) -> None:
        """Store a compaction with the step that shows it. Raises Interrupted as `append`."""
        self.keeper.check()
        await self.write(TurnRecord(step=step, compaction=compaction))

    async def append_early(self, steps: Sequence[ToolExecutionStep | ShieldCallStep], /) -> None:
        """Store results before their turn in the model's order. Raises Interrupted as `append`."""
        self.keeper.check()
        await self.write(TurnRecord(early=[*steps]))

    async def take_input(self, transcript: Transcript, /) -> bool:
        """Store the messages of the same caller that wait for the session to the turn, and append them.

        Raises:
            Interrupted: as `append`.
        """
        from stint.services.turns.merging import take_messages  # noqa: PLC0415 - simple turns call the model once

        lease = self.keeper.lease
        line = self.make_line(lease.tenant, lease.agent_id, lease.session_id)
        async with take_messages(line, lease.turn_id) as merged:
            if merged:
                self.keeper.check()
                await self.write(TurnRecord(merged=merged))
        for message in merged:
            add_merged(transcript, message)
        return bool(merged)

    async def mark_sent(self, _call_ids: Sequence[str], /, *, approved: bool) -> None:
        """Do nothing: no turn is resumed within a round of tools."""

    async def write(self, record: TurnRecord) -> None:
        if (ledger := self.keeper.lease.ledger) is not None:
            record.spent = ledger.pack()
        with self.writing():
            size = await self.store.append(self.keeper.lease, len(self.turn.records), record)
        if record.compaction is not None:
            self.turn.skipped = self.turn.size
        self.turn.records.append(record)
        self.turn.size += size
        self.mark_last()

    async def end(self) -> None:
        """Release the lease of a turn whose ending is stored, remember the turn for the next one, and announce it."""
        if (used := self.turn.usage_of_last_run) is not None:
            self.keeper.lease.add_usage(used)
        await self.keeper.release()
        if self.recorder is not None:
            self.recorder.record_end(self.turn)
        if not self.webhooks.knows_none():
            await self.webhooks.turn_ended(self.place, self.turn.status, len(self.turn.records), asks=self.asks())

    async def announce_start(self) -> None:
        """Announce that the turn runs, when its header or the results that resume it are stored."""
        await self.webhooks.turn_started(self.place, len(self.turn.records))

    def asks(self) -> bool:
        """Return whether the first call that the turn waits for waits for approval."""
        waiting = self.turn.unapproved or ()
        return any(call.call_id in waiting for call in unanswered_calls(self.turn.steps)[:1])

    @property
    def place(self) -> TurnPlace:
        lease = self.keeper.lease
        return TurnPlace(lease.agent_id, lease.session_id, self.turn.header.turn_id)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Forget the end of the history, until the write has succeeded.

        Mark an error with the turn's id if the first write may have succeeded: the turn must not start twice.
        """
        self.keeper.lease.forget_last()  # a lease that is released after a failed write must not name an old end
        try:
            yield
        except StoreUnavailable as error:
            if error.unsure:
                error.turn_id = self.turn.header.turn_id
            raise

    async def read_again(self) -> bool:
        """Read the turn after a write failed, and return whether it has records that this log did not know of.

        An ending among them frees the session, as in `append`.
        """
        lease = self.keeper.lease
        stored = await self.store.get(lease.tenant, lease.agent_id, lease.session_id, lease.turn_id)
        if len(stored.records) <= len(self.turn.records):
            return False
        self.turn.records[:], self.turn.size, self.turn.skipped = stored.records, stored.size, stored.skipped
        self.mark_last()
        if stored.ending is not None:
            await self.end()
        return True

    def check(self) -> None:
        """Check that the lease is still valid. Raises Interrupted."""
        self.keeper.check()

    async def store_result(self, content: Content) -> str:
        """Store a result that is too long for a record among the turn's blobs."""
        body = content.encode() if isinstance(content, str) else StoredResult(content=content).to_json()
        return await self.store.put_body(self.keeper.lease, body)

    async def put_pending(self, step: Step | None, pause: RunOutcome) -> list[ToolCall]:
        """Store the calls that wait for the client, before the pause becomes visible, and return them."""
        steps = [*self.turn.steps, *([step] if step else [])]
        pending = calls_of_pause(self.turn.header.turn_id, steps, pause)
        await self.store.put_pending(self.keeper.lease, pending)
        return pending.tool_calls

    def mark_last(self) -> None:
        """Record that the session's history ends here."""
        self.keeper.lease.last = LastTurn(self.turn.header.turn_id, len(self.turn.records))


def make_partial_storage(store: Store, log: TurnLog) -> PartialStorage:
    """Return where parts of a turn's steps are stored while they run."""
    lease = log.keeper.lease
    return make_storage(store, partial(find_partials, lease), log.check, lease.expires_at)


def calls_of_pause(turn_id: str, steps: list[Step], pause: RunOutcome) -> PendingCalls:
    """Return the record of the calls that a paused turn waits for."""
    return PendingCalls(
        turn_id=turn_id, step_id=new_id(), started_at=pause.completed_at, tool_calls=unanswered_calls(steps)
    )


def find_partials(lease: SessionLease) -> "PartialPlace":
    """Return where the parts of a turn's unfinished steps are stored."""
    from stint.store.keys import turn_partials  # noqa: PLC0415 - few steps run long

    return turn_partials(lease.tenant, lease.agent_id, lease.session_id, lease.turn_id)
