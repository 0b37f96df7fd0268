"""The items of a conversation as the messages of a context, of which a warm process reads only what it does not know.

A conversation is remembered as one link, as if a single response had added its first items, and as the records of the
items after them. What is remembered is current by itself, because nothing changes an item under its key. What has to be
checked is which items exist. Responses add them under the lease, and callers add and delete them at any time:

- If the lease was acquired directly after the process's own last response released it (`Lease.last`), no other response
  has added any since.
- If the conversation's record, which the acquisition returns, has the version with which the items were read, no caller
  has changed them since (`stint.store.item_changes`).

If both hold, nothing is read. Otherwise the keys of the items are listed under the lease:

| the keys that are listed                         | what is read         |
|--------------------------------------------------|----------------------|
| are those of the link, and of known records      | nothing more         |
| are those of the link, and some unknown after it | the records of these |
| lack one of the link, or have one before its end | all items            |

While an earlier release may write, no version counts, and each response lists the keys. A process that remembers its
own last response does so at the same time as it acquires the lease. The list then has the items of that response, which
were stored before. If another response may have added items, the list is made again. So that this is rare, a process
that has met another one lists under the lease, until it has had two responses in a row.

Items are read in order, and later ones can change what earlier ones mean: outputs move to their calls, and an answer
consists of several items. So items are added to the link only when nothing after them can belong to them
(`is_settled`), and items after the link begin with a message that is not the model's. Any other conversation is read as
a whole.

Not remembered are conversations that are cut, because a cut depends on the items that are left out, and those with
texts of files, which a repeated request may read anew and store under the same key.
"""

from collections.abc import Sequence

from stint.dataclasses import dataclass, replace
from stint.domain.errors import NotFound
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import FunctionCall, Message
from stint.loop.transcript import Transcript
from stint.services.responses.answer_order import are_paired
from stint.services.responses.code_runs import containers_in
from stint.services.responses.items_to_messages import MessageBuilder
from stint.services.responses.link_cache import CachedConversation, CachedLink, ItemsVersion, LinkCache
from stint.services.responses.links import Context, add_cached_link
from stint.services.responses.search_items import files_in
from stint.store.conversations import ConversationStore
from stint.store.documents import context_size
from stint.store.items import Item
from stint.store.lease import Lease

MOST_FETCHED = 32
"""Maximum items that are read by their keys, a read unit each. If more are unknown, all items are read again."""


@dataclass(frozen=True, slots=True)
class ReadConversation:
    """The context of a conversation. `complete`: no item was omitted. `lapsed` as in ItemPage."""

    context: Context
    complete: bool
    lapsed: bool


@dataclass(frozen=True, slots=True)
class ListedConversation:
    """The keys of a conversation's items, oldest first, and what was `known` before. `lapsed` as in ItemPage."""

    known: CachedConversation
    keys: tuple[str, ...]
    lapsed: bool


@dataclass(frozen=True, slots=True)
class NewItems:
    """Items after those of a link, with their records."""

    items: Sequence[StoredItem]
    records: Sequence[Item]


@dataclass(frozen=True, slots=True)
class ConversationReader:
    """Reads the conversations of a tenant, up to `history_bytes` of JSON each."""

    tenant: str
    store: ConversationStore
    cache: LinkCache
    history_bytes: int

    async def read(
        self, conversation_id: str, listed: ListedConversation | None = None, lease: Lease | None = None
    ) -> ReadConversation:
        """Read the newest items that fit, or those that were `listed`, for a caller that may have the lease.

        Raises NotFound if there is no conversation.
        """
        version = self.find_version(lease) if lease is not None else None
        try:
            known = self.cache.get_conversation(self.tenant, conversation_id)
            if listed is None and known is not None:
                listed = await self.list_known(conversation_id, known, leased=lease is not None)
            found = await self.read_later(conversation_id, listed, version) if listed is not None else None
            return found if found is not None else await self.read_all(conversation_id, version)
        except NotFound:
            self.cache.forget(self.tenant, conversation_id)
            raise

    async def read_all(self, conversation_id: str, version: ItemsVersion | None) -> ReadConversation:
        """Read a conversation as if nothing was known of it."""
        history = await self.store.history(self.tenant, conversation_id, self.history_bytes)
        # Without a version if it is cut: another thread may add to it before it is forgotten.
        known = replace(nothing_known(), version=version if history.complete else None)
        context = self.continue_from(conversation_id, known, NewItems(history.items, history.records))
        if not history.complete:
            self.cache.forget(self.tenant, conversation_id)
        context.size = history.size
        return ReadConversation(context, history.complete, history.lapsed)

    async def list_known(self, conversation_id: str, known: CachedConversation, *, leased: bool) -> ListedConversation:
        """List the items of a known conversation. Raises NotFound."""
        # A list that is cut here has too many unknown keys for any of them to be fetched.
        most = known.count + MOST_FETCHED + 1
        listed = await self.store.list_keys(self.tenant, conversation_id, until=known.until, limit=most, leased=leased)
        return ListedConversation(known, listed.keys, listed.lapsed)

    async def list_early(self, conversation_id: str, *, again: bool) -> ListedConversation | None:
        """List the items while a lease is acquired, if the list is likely to be current: see above.

        A lease that is acquired `again` cannot tell whether it is.
        """
        known = self.cache.get_conversation(self.tenant, conversation_id)
        if self.store.versioned or again or known is None or known.last_lease is None or not known.alone:
            return None
        return await self.list_known(conversation_id, known, leased=True)

    def list_unchanged(self, conversation_id: str, lease: Lease) -> ListedConversation | None:
        """Return the known items as a list, without a call, if a lease shows that they are all; otherwise None."""
        known = self.cache.get_conversation(self.tenant, conversation_id)
        if known is None or known.version is None or known.last_lease is None or known.last_lease != lease.last:
            return None
        if known.version.version != self.store.version_of(lease.item):
            return None
        return ListedConversation(known, known.listed, lapsed=False)

    def find_version(self, lease: Lease) -> ItemsVersion | None:
        """Return the version with which items are remembered that are read under a lease."""
        version = self.store.version_of(lease.item)
        return ItemsVersion(version, lease.lease_id) if version is not None else None

    def note_acquired(self, conversation_id: str, lease: Lease | BaseException) -> None:
        """Note which lease was released before one, or that it was refused."""
        if isinstance(lease, NotFound):
            self.cache.forget(self.tenant, conversation_id)
        else:
            last = lease.last if isinstance(lease, Lease) else None
            self.cache.note_holder_before(self.tenant, conversation_id, last)

    async def read_later(
        self, conversation_id: str, listed: ListedConversation, version: ItemsVersion | None
    ) -> ReadConversation | None:
        """Read what follows the known items; None if the conversation has to be read as a whole."""
        known = replace(listed.known, version=version)
        if listed.keys[: len(known.keys)] != known.keys:
            return None
        after = listed.keys[len(known.keys) :]
        unknown = [key for key in after if key not in known.later]
        if len(unknown) > MOST_FETCHED:
            return None
        fetched = await self.store.get_records(self.tenant, conversation_id, unknown) if unknown else {}
        records = [record for key in after if (record := known.later.get(key) or fetched.get(key)) is not None]
        new = NewItems(await self.store.read_brief(records), records)
        fits = known.link.size + sum(map(context_size, records)) <= self.history_bytes
        if not fits or not can_follow(known, new):
            return None
        return ReadConversation(self.continue_from(conversation_id, known, new), complete=True, lapsed=listed.lapsed)

    async def read_before(self, conversation_id: str, item_id: str) -> ReadConversation:
        """Read the items that a conversation has before the place of an id, and remember nothing. Raises NotFound."""
        history = await self.store.history(self.tenant, conversation_id, self.history_bytes, before=item_id)
        start = max((place for place, record in enumerate(history.records) if "compacts" in record), default=0)
        new = NewItems(history.items[start:], history.records[start:])
        context, _ = self.make_context(nothing_known(), new)
        return ReadConversation(context, history.complete, history.lapsed)

    def continue_from(self, conversation_id: str, known: CachedConversation, new: NewItems) -> Context:
        """Return the context of known and new items, and remember it."""
        start = max((place for place, record in enumerate(new.records) if "compacts" in record), default=-1)
        if start >= 0:
            known = replace(nothing_known(), until=new.records[start]["sk"], version=known.version)
            new = NewItems(new.items[start:], new.records[start:])
        context, settled = self.make_context(known, new)
        self.remember(conversation_id, known, new, context, settled=settled)
        return context

    def make_context(self, known: CachedConversation, new: NewItems) -> tuple[Context, bool]:
        """Return the context of known and new items, and whether no later item can belong to these."""
        context = Context(MessageBuilder(Transcript(), lenient=True))
        add_cached_link(context, known.link)
        context.reader.append_items(dict(enumerate(new.items, len(known.keys))))
        settled = is_settled(context.reader, new.items)
        context.reader.flush_later()
        context.reader.lenient = False
        note_items(context, new.items)
        context.size = known.link.size + sum(map(context_size, new.records))
        return context, settled

    def remember(
        self, conversation_id: str, known: CachedConversation, new: NewItems, context: Context, *, settled: bool
    ) -> None:
        """Keep a context for the next response, unless an item has texts of files."""
        if any(stored.texts for stored in new.items):
            self.cache.forget(self.tenant, conversation_id)
            return
        if settled:
            keys = (*known.keys, *(record["sk"] for record in new.records))
            changed = replace(known, link=link_of(context), keys=keys, later={})
        else:
            changed = replace(known, later={}).with_items(new.records)
        self.cache.put_conversation(self.tenant, conversation_id, changed)


def can_follow(known: CachedConversation, new: NewItems) -> bool:
    """Return whether items can be read after those of a link without these: they begin no part of an answer."""
    if not known.keys or not new.items:
        return True
    first = new.items[0].item
    return isinstance(first, Message) and first.role != "assistant"


def is_settled(reader: MessageBuilder, items: Sequence[StoredItem]) -> bool:
    """Return whether no later item can belong to these: their calls have answers, and their answers have calls."""
    return not reader.transcript.open and are_paired(items)


def nothing_known() -> CachedConversation:
    """Return what is known of a conversation that was not read."""
    empty = Context(MessageBuilder(Transcript()))
    return CachedConversation(link_of(empty))


def note_items(context: Context, items: Sequence[StoredItem]) -> None:
    """Note what is known of items besides their messages."""
    added = [stored.item for stored in items]
    context.known.update(item.id for item in added)
    context.function_calls.update(item.call_id for item in added if isinstance(item, FunctionCall))
    context.sources.update(files_in(added))
    context.containers.extend(containers_in(added))


def link_of(context: Context) -> CachedLink:
    """Return all that the items of a conversation add to a context without anything before it."""
    transcript = context.reader.transcript
    return CachedLink(
        previous=None,
        size=context.size,
        start=0,
        messages=tuple(transcript.messages),
        open={},
        answered=False,
        opaque_left=context.reader.opaque.left,
        call_ids=tuple(transcript.call_ids),
        item_ids=tuple(context.known),
        function_calls=tuple(context.function_calls),
        excused=(),
        sources=dict(context.sources),
        containers=tuple(context.containers),
        compacted=transcript.compacted,
    )
