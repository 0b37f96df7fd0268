"""The context of a response: the previous responses, or a conversation.

It is read before anything is stored. Ended responses never change, so a warm process keeps the messages that they add.
A context that is too long is refused, or cut if the request allows that.

| the conversation's lease                       | a response that starts                                  |
|------------------------------------------------|---------------------------------------------------------|
| is free                                        | acquires it                                             |
| is held by another response                    | Conflict                                                |
| lapsed, its holder ran in the foreground       | acquires it, ends the holder, and adds its items        |
| lapsed, its holder waits in the background     | Conflict; the holder is queued again if its worker died |
| lapsed, its holder in the background has ended | acquires it, and adds the holder's items                |

The items of a holder are added before the history is read, and by whoever has the lease, so that they are before those
of the next response, and there once.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, ContextLengthExceeded, InvalidRequest, NotFound, StintError
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.stored_responses import RUNNING, ResponseHeader, StoredResponse
from stint.loop.lease_keeper import LeaseKeeper, lease_span
from stint.loop.transcript import Transcript
from stint.metering import name_run
from stint.services.conversations.include import whole
from stint.services.conversations.opaque_texts import OpaqueTexts
from stint.services.responses.conversation_reader import ConversationReader, ListedConversation
from stint.services.responses.conversation_writer import ConversationWriter
from stint.services.responses.input_items import owner_of
from stint.services.responses.items_to_messages import MessageBuilder
from stint.services.responses.link_cache import LinkCache, TenantLinks
from stint.services.responses.links import Context, add_cached_link, add_link
from stint.services.responses.output_items import output_of
from stint.services.responses.recovery import Recovery, interrupted_record, mark_interrupted
from stint.services.runs.webhook_events import NO_WEBHOOKS, WebhookEvents
from stint.store.lease import Lease
from stint.store.response_logs import NO_LINKS, Chain, place_after_chain, place_after_response
from stint.store.session_ledgers import find_ledger, noting
from stint.store.store import Store


@dataclass(frozen=True, slots=True)
class FinishedHolder:
    """A holder of a conversation that has ended. `spent` has the totals of the conversation's budget in its log."""

    spent: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationRecovery:
    """Completes what the holder of a lapsed lease left in a tenant's conversation."""

    tenant: str
    store: Store
    opaque: OpaqueTexts
    links: LinkCache
    webhooks: WebhookEvents = NO_WEBHOOKS

    async def reconcile(self, conversation_id: str) -> bool:
        """Complete a conversation for a reader, and clear its lapsed lease. Return whether it may have changed.

        Raises:
            NotFound: the conversation does not exist.
        """
        lapsed = await self.store.conversation_leases.find_lapsed(self.tenant, conversation_id)
        if lapsed is None:
            return False
        finished = await self.finish_holder(conversation_id, lapsed.holder, lapsed.expires_at)
        if finished is None:
            return False
        await self.store.conversation_leases.clear(self.tenant, conversation_id, lapsed, finished.spent)
        return True

    async def finish_holder(
        self, conversation_id: str, response_id: str, expires_at: int | None
    ) -> FinishedHolder | None:
        """End a foreground response whose lease on a conversation lapsed, and add the items of a response that ended.

        Return None for a background response that has not ended, because its worker continues it. `expires_at` is that
        of the conversation.

        Raises:
            NotFound: the conversation was deleted.
        """
        stored = await self._find_ended(response_id)
        if stored is None:
            return FinishedHolder()
        if stored.ending is None:
            return None
        writer = self.make_writer(conversation_id, expires_at)
        await writer.put_items(await writer.pack_items(stored))
        return FinishedHolder(stored.spent)

    def make_writer(
        self, conversation_id: str, expires_at: int | None, lease: Lease | None = None
    ) -> ConversationWriter:
        """Return what adds the items of a response to a conversation, whose end is `expires_at`, under its lease."""
        return ConversationWriter(
            self.tenant,
            self.store.conversations,
            conversation_id,
            self.opaque,
            cache=self.links,
            expires_at=expires_at,
            lease_id=lease.lease_id if lease is not None else None,
        )

    async def _find_ended(self, response_id: str) -> StoredResponse | None:
        """Return a response, which is ended if it is in the foreground; None if it does not exist."""
        responses = self.store.responses
        with suppress(NotFound):
            stored = await responses.get(self.tenant, response_id)
            if stored.ending is None and not stored.header.background:
                ended = await responses.seal(self.tenant, response_id, interrupted_record)
                await self.webhooks.response_ended(response_id, ended.status)
                return ended
            return stored
        return None


@dataclass(frozen=True, slots=True)
class Contexts:
    """Reads the contexts of a tenant's responses."""

    tenant: str
    store: Store
    recovery: Recovery
    opaque: OpaqueTexts
    lease_seconds: float
    """Seconds of a lease of a conversation, and of a foreground response."""

    history_bytes: int
    """Maximum bytes of JSON that are read of what a response continues."""

    links: LinkCache
    """The links of chains, and the conversations, that the process has read."""

    @property
    def conversations(self) -> ConversationRecovery:
        return ConversationRecovery(self.tenant, self.store, self.opaque, self.links, self.recovery.webhooks)

    @property
    def reader(self) -> ConversationReader:
        return ConversationReader(self.tenant, self.store.conversations, self.links, self.history_bytes)

    def new(self) -> Context:
        """Return an empty context."""
        return Context(MessageBuilder(Transcript()))

    async def from_response(self, previous_response_id: str, *, shortens: bool, cached: bool = True) -> Context:
        """Continue from a response, or from the one that has the message with its id. Links may be `cached` ones.

        Raises:
            InvalidRequest: it, or one before it, does not exist.
            Conflict: it still runs or waits.
            ContextLengthExceeded: all that came before is too long, and may not be shortened.
        """
        chain, links = await self.read_chain(previous_response_id, shortens=shortens, cached=cached)
        ended = {link for link, stored in chain.read.items() if stored.ending is not None}
        if (last := chain.ids[-1]) in chain.read:
            webhooks = self.recovery.webhooks
            chain.read[last] = await mark_interrupted(self.store, self.tenant, chain.read[last], webhooks)
            self.refuse_running(chain.read[last])
        context = Context(MessageBuilder(Transcript(), lenient=chain.compacted or not chain.complete))
        final = chain.complete
        for previous, link in zip([None, *chain.ids], chain.ids, strict=False):
            stored = chain.read.get(link)
            if stored is None:
                add_cached_link(context, links.used[link])
                continue
            if link != last:  # its items and its messages would both be in memory until the chain is read
                del chain.read[link]
            added = add_link(context, stored, self.opaque.encode, previous)
            final = final and link in ended
            if final:
                self.links.put(self.tenant, link, added)
        place = place_after_chain(chain.ids) if chain.complete else place_after_response(chain.read[last].header)
        context.first_id = chain.ids[0]
        context.previous_id, (context.ancestors, context.depth) = last, place
        context.reader.lenient = False
        context.is_cut = not chain.complete
        return context

    async def read_chain(self, response_id: str, *, shortens: bool, cached: bool) -> tuple[Chain, TenantLinks]:
        """Read a chain, and return the cached links that were not read.

        A shortened chain is read, because its context is not that of the whole chain.
        """
        responses, links = self.store.responses, TenantLinks(self.links, self.tenant)
        try:
            chain = await responses.chain(self.tenant, response_id, self.history_bytes, links if cached else NO_LINKS)
            self.refuse_excess(complete=chain.complete, shortens=shortens)
            if not chain.complete and links.used:
                chain.read.clear()  # which is read again, and would be in memory twice
                chain = await responses.chain(self.tenant, response_id, self.history_bytes)
            chain = chain if chain.complete else chain.cut(self.history_bytes)
        except NotFound as error:
            from stint.services.responses.message_runs import find_run  # noqa: PLC0415 - few messages wait

            run_id = await find_run(self.store, self.recovery, self.tenant, response_id)
            if run_id is None:
                raise not_found(response_id, error) from None
            return await self.read_chain(run_id, shortens=shortens, cached=cached)
        return chain, links

    def note_previous(self, header: ResponseHeader) -> None:
        """Remember what a new response continues, so that the next one can check all links at once."""
        if header.previous_response_id is not None:
            self.links.note_previous(self.tenant, header.response_id, header.previous_response_id)

    def refuse_running(self, stored: StoredResponse) -> None:
        if stored.status in RUNNING:
            raise Conflict(
                f"Response {stored.header.response_id} is {stored.status.value}: wait until it ends.",
                code="response_in_progress",
            )

    async def from_conversation(
        self, conversation_id: str, response_id: str, deadline: float, *, shortens: bool, again: bool = False
    ) -> Context:
        """Acquire a conversation's lease for a response, and read its context; `again` if it had the lease.

        Raises:
            NotFound: there is no such conversation.
            Conflict: `conversation_locked` while another response runs in it, or waits to.
            ContextLengthExceeded: it is too long, and may not be shortened.
            QuotaExceeded: its budget is spent.
        """
        name_run("", conversation_id)
        asked, span = asyncio.get_running_loop().time(), lease_span(self.lease_seconds, deadline)
        early = asyncio.create_task(self.reader.list_early(conversation_id, again=again))
        try:
            lease = await self.acquire_lease(conversation_id, response_id, span, again=again)
        except BaseException as error:
            early.cancel()
            await asyncio.gather(early, return_exceptions=True)
            self.reader.note_acquired(conversation_id, error)
            raise
        if (ledger := find_ledger(lease.item, f"Conversation {conversation_id}")) is not None:
            lease = noting(lease, ledger)
        keeper = LeaseKeeper(lease, self.lease_seconds, deadline, asked + span)
        async with keeper.released_on_error():
            listed = await self.choose_list(conversation_id, early, lease)
            if lease.taken_over is not None:
                end = lease.item.get("expires_at")
                finished = await self.conversations.finish_holder(conversation_id, lease.taken_over, end)
                if ledger is not None and finished is not None:
                    ledger.note(finished.spent)
            found = await self.reader.read(conversation_id, listed, lease)
            self.refuse_excess(complete=found.complete, shortens=shortens)
            if ledger is not None:
                from stint.spending.session_spending import limit_run  # noqa: PLC0415 - few conversations have one

                limit_run(ledger)
        found.context.keeper, found.context.ledger = keeper, ledger
        return found.context

    async def choose_list(
        self, conversation_id: str, early: asyncio.Task[ListedConversation | None], lease: Lease
    ) -> ListedConversation | None:
        """Return a list of the items that is current, if there is one without listing them under the lease.

        A list that failed, or that may lack the items of another response, is made again under the lease.
        """
        self.reader.note_acquired(conversation_id, lease)
        if (unchanged := self.reader.list_unchanged(conversation_id, lease)) is not None:
            return unchanged
        try:
            listed = await early
        except StintError:
            return None
        known = listed.known.last_lease if listed is not None else None
        return listed if known is not None and known == lease.last else None

    async def acquire_lease(self, conversation_id: str, response_id: str, seconds: float, *, again: bool) -> Lease:
        """Acquire the lease of a conversation for a response.

        A response in the background holds its conversation from the moment it is accepted until it has ended, even
        while no worker renews the lease: its record counts. That is read only when the lease has lapsed.
        """
        waiting: list[StoredResponse] = []
        spent: dict[str, str | None] = {}

        async def waits(holder: str) -> bool:
            with suppress(NotFound):
                stored = await self.store.responses.get(self.tenant, holder)
                spent[holder] = stored.spent
                if stored.header.background and stored.ending is None:
                    waiting.append(stored)
                    return True
            return False

        acquire = partial(
            self.store.conversation_leases.acquire,
            self.tenant,
            conversation_id,
            response_id,
            seconds,
            waits,
            again=again,
            spent_by=spent.get,
        )
        try:
            return await acquire()
        except Conflict:
            if not waiting or not await self.is_over(waiting[-1]):
                raise
        return await acquire()

    async def is_over(self, stored: StoredResponse) -> bool:
        """Return whether a background response has ended. One whose worker died is queued again."""
        try:
            return (await self.recovery.reconcile(stored)).ending is not None
        except NotFound:
            return True

    async def peek(self, conversation_id: str, *, shortens: bool) -> Context:
        """Read a conversation without a lease. Raises NotFound and ContextLengthExceeded."""
        found = await self.reader.read(conversation_id)
        if found.lapsed and await self.conversations.reconcile(conversation_id):
            found = await self.reader.read(conversation_id)
        self.refuse_excess(complete=found.complete, shortens=shortens)
        return found.context

    async def before_response(self, header: ResponseHeader) -> Context:
        """Read again what a response continued, as it was then. Nothing is leased, and no cached link is used.

        Raises:
            NotFound: the conversation does not exist any more.
            InvalidRequest: a response before it does not exist any more.
            ContextLengthExceeded: what is read now is too long, and may not be shortened.
        """
        shortens = header.settings.shortens
        if header.previous_response_id is not None:
            return await self.from_response(header.previous_response_id, shortens=shortens, cached=False)
        if header.conversation_id is None:
            return self.new()
        # The input is in the conversation, too, directly before the place of the response.
        first = header.input[0].id if header.input else header.response_id
        found = await self.reader.read_before(header.conversation_id, first)
        self.refuse_excess(complete=found.complete, shortens=shortens)
        found.context.is_cut = not found.complete
        return found.context

    def refuse_excess(self, *, complete: bool, shortens: bool) -> None:
        if not complete and not shortens:
            raise ContextLengthExceeded(
                f"The context has more than {self.history_bytes} bytes (STINT_HISTORY_BYTES). Send truncation "
                "auto to drop its older part, or compact it with POST /v1/responses/compact."
            )

    def is_full(self, context: Context) -> bool:
        """Return whether a context is almost too long to be read."""
        return 4 * context.size > 3 * self.history_bytes

    async def find(self, ids: Sequence[str]) -> dict[str, StoredItem]:
        """Find items of stored responses by their ids. Missing ones are omitted.

        Raises:
            ContextLengthExceeded: the responses have more than `history_bytes` together.
        """
        owners = sorted({owner for owner in map(owner_of, ids) if owner is not None})
        found, cut = await self.store.responses.find_many(self.tenant, owners, self.history_bytes)
        if cut:
            raise ContextLengthExceeded(
                f"The responses whose items the input refers to have more than {self.history_bytes} bytes in total "
                "(STINT_HISTORY_BYTES). Send the items themselves, or only some of them."
            )
        items: dict[str, StoredItem] = {}
        for stored in found:
            await self.opaque.warm_for(stored.records)
            output = output_of(stored, self.opaque.encode, whole(stored.header.settings))
            items |= {item.id: StoredItem(item=item) for item in (*output.all_items, *stored.merged_items)}
        return items


def not_found(previous_response_id: str, error: NotFound) -> InvalidRequest:
    """Make the error for a missing response of a chain."""
    return InvalidRequest(
        f"Previous response with id {previous_response_id!r} cannot be continued: {error.message}.",
        code="previous_response_not_found",
        param="previous_response_id",
    )
