"""The context of a response, and the links of a chain that are added to it.

What a response continues is made of links, from the first response of the chain to the last. `add_link` reads a stored
response: its input and its log become messages, as they were when the model saw them. `add_cached_link` repeats its
effect from a `CachedLink`, without parsing. Both must leave the same context, so whatever a link adds is in the cached
one, too: messages, open calls, ids, sources, containers, sizes.

A later record can change what an earlier one means: the state of the calls of an answer is known after the whole log,
and a compaction replaces everything before it. That is why a log is read to its end before messages are made, and why
a link has `start`, the number of earlier messages that it keeps.
"""

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from itertools import zip_longest
from typing import TYPE_CHECKING

from stint.dataclasses import dataclass, field
from stint.domain.inference import AssistantAnswer, ModelMessage
from stint.domain.openai.items import FunctionCall, Item, Message
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, StoredResponse
from stint.domain.session_budgets import SessionLedger
from stint.domain.steps import InferenceStep, ToolExecutionStep
from stint.loop.lease_keeper import LeaseKeeper
from stint.loop.transcript import Transcript
from stint.services.responses.answer_calls import AnswerCalls
from stint.services.responses.code_runs import containers_in
from stint.services.responses.items_to_messages import MessageBuilder
from stint.services.responses.link_cache import CachedLink
from stint.services.responses.output_items import Encode, OutputItems
from stint.services.responses.search_items import files_in
from stint.store.lease import Lease

if TYPE_CHECKING:  # few models take cache keys
    from stint.services.runs.cache_keys import CacheKeys


@dataclass(slots=True)
class Context:
    """The messages before the input, and what is known of them."""

    reader: MessageBuilder
    """Has the messages, and appends those of the input."""

    previous_id: str | None = None
    """The response that is continued; None if that is a conversation, or there is nothing before."""

    first_id: str | None = None
    """The first response of the chain that was read."""

    ancestors: list[str] = field(default_factory=list)
    """Ids of earlier responses for the header of the new one, by which its chain is read in few calls."""

    depth: int = 0
    """The place of the new response in its chain, from 0."""

    known: set[str] = field(default_factory=set)
    """The ids of the items."""

    function_calls: set[str] = field(default_factory=set)
    """The ids of the calls of the client's functions."""

    excused: set[str] = field(default_factory=set)
    """The open calls of failed or cancelled responses, which need no results."""

    sources: dict[str, str] = field(default_factory=dict)
    """The names of the files that were found, by their ids."""

    containers: list[str] = field(default_factory=list)
    """The ids of the containers in which code ran, the last one at the end."""

    user_messages: list[Message] = field(default_factory=list)
    """The messages of users, without those of cached links."""

    size: int = 0
    """Bytes of JSON, without those of a response that compacted what was before it."""

    is_cut: bool = False
    """Whether the older part of what is continued was omitted."""

    keeper: LeaseKeeper[Lease] | None = None
    """Keeps the lease of the conversation that is continued, as long as the response runs."""

    ledger: SessionLedger | None = None
    """The budget of the conversation that is continued; None if it has none."""

    def place(self, header: ResponseHeader) -> None:
        """Place the header of a response after those that it continues."""
        header.previous_response_id, header.ancestors, header.depth = self.previous_id, self.ancestors, self.depth

    def cache_key(self, header: ResponseHeader, keys: "CacheKeys") -> str:
        """Return the cache key of a response, which is that of the responses before and after it."""
        settings = header.settings
        single = self.first_id is None and settings.store is False
        if settings.prompt_cache_key or (single and header.conversation_id is None):
            return keys.derive_of_caller(settings.prompt_cache_key)
        if header.conversation_id is not None:
            return keys.derive("conversation", header.conversation_id)
        return keys.derive("response", self.first_id or header.response_id)


def add_link(context: Context, link: StoredResponse, encode: Encode, previous: str | None) -> CachedLink:
    """Add a response to a context, and return what it added. `previous` is the response that it continues."""
    reader, transcript = context.reader, context.reader.transcript
    before = transcript.messages.copy()
    reader.read(link.header.input, link.header.texts)
    settings = link.header.settings.model_copy(update={"include": []})  # these items are not returned
    output = OutputItems(link.header.response_id, settings, encode, link.header.listed)
    add_records(reader, output, link.records)
    reader.flush_later()
    broke_off = link.ending is not None and link.ending.broke_off
    items = [*link.header.input, *link.merged_items, *output.items]
    compacts = any(record.compaction is not None for record in link.records)
    start = 0 if compacts else common_start(before, transcript.messages)
    older = [link.header.settings.container_id] if compacts and link.header.settings.container_id else []
    messages = tuple(transcript.messages[start:])
    answers = [message for message in messages if isinstance(message, AssistantAnswer)]
    added = CachedLink(
        previous=previous,
        size=link.size - link.skipped,
        start=start,
        messages=messages,
        open=transcript.open.copy(),
        answered=transcript.answered,
        opaque_left=reader.opaque.left,
        call_ids=tuple(call.call_id for answer in answers for call in answer.tool_calls),
        item_ids=tuple(item.id for item in items),
        function_calls=tuple(item.call_id for item in items if isinstance(item, FunctionCall)),
        excused=tuple(transcript.open) if broke_off else (),
        sources=files_in(link.header.input) | output.sources,
        containers=(*older, *containers_in(items)),
        compacted=transcript.compacted if compacts else 0,
    )
    note_items(context, added)
    context.user_messages += user_messages_in(items)
    return added


def add_cached_link(context: Context, link: CachedLink) -> None:
    """Add a response to a context like `add_link`, after the same responses."""
    reader, transcript = context.reader, context.reader.transcript
    transcript.messages[link.start :] = link.messages
    transcript.open = dict(link.open)
    transcript.call_ids.update(link.call_ids)
    transcript.answered = link.answered
    transcript.compacted = link.compacted or transcript.compacted
    reader.opaque.left = link.opaque_left
    note_items(context, link)


def user_messages_in(items: Iterable[Item]) -> list[Message]:
    """Return the messages of users among items."""
    return [item for item in items if isinstance(item, Message) and item.role == "user"]


def note_items(context: Context, link: CachedLink) -> None:
    context.known.update(link.item_ids)
    context.function_calls.update(link.function_calls)
    context.excused.update(link.excused)
    context.sources.update(link.sources)
    context.containers.extend(link.containers)
    context.size = 0 if link.compacted else context.size + link.size


def common_start(before: list[ModelMessage], after: list[ModelMessage]) -> int:
    """Return how many messages at the start are the same."""
    if after[: len(before)] == before:
        return len(before)
    return next(place for place, pair in enumerate(zip_longest(before, after)) if pair[0] is not pair[1])


def add_records(reader: MessageBuilder, output: OutputItems, records: Iterable[ResponseRecord]) -> None:
    """Append the messages of a response's log, with the calls that its input approved first.

    The state of an answer's calls is known after all records are read. If the response that requested an approval is
    omitted, the result of the approved call is omitted, too.
    """
    added: list[tuple[ResponseRecord, AnswerCalls]] = []
    for record in records:
        output.add_record(record)
        added.append((record, output.calls))
    for record, calls in added:
        step = record.step
        if record.merged is not None:
            reader.flush_later()
            reader.read([item for each in record.merged for item in each.items])
        if record.compaction is not None:
            reader.flush_later()
            reader.transcript.compact(record.compaction)
        if isinstance(step, InferenceStep):
            reader.flush_later()
            step = calls.in_context(step)
        if step is None or (isinstance(step, ToolExecutionStep) and not is_answer(step, reader.transcript)):
            continue
        reader.transcript.add_step(step, record.details)
    if added and (ending := added[-1][0].ending) is not None and ending.broke_off:
        unsent = [call_id for record, _ in added if record.details for call_id in record.details.unsent or ()]
        close_sent_calls(reader.transcript, output, unsent)


def close_sent_calls(transcript: Transcript, output: OutputItems, unsent: Collection[str]) -> None:
    """Append the results of the last answer that arrived early, and say which calls were sent without a result."""
    for call_id, step in output.early.items():
        if call_id in transcript.open:
            transcript.add_step(step)
    calls = list(transcript.open.values())
    sent = {call.call_id for call in calls if not output.is_for_client(call)}
    transcript.close_sent(sent.difference(unsent))


def is_answer(step: ToolExecutionStep, transcript: Transcript) -> bool:
    return any(call.call_id in transcript.open for call in step.tool_calls)


@asynccontextmanager
async def released_on_error(context: Context) -> AsyncIterator[None]:
    """Release the conversation's lease if the body fails."""
    if context.keeper is None:
        yield
        return
    async with context.keeper.released_on_error():
        yield
