"""Requests that the running response of a conversation takes before its next model call.

Only requests of the same caller are taken, which have only messages and the same settings. The order of writes:

1. The message is claimed for the response. A message that its own request starts meanwhile is not taken.
2. The messages are stored as a record of the response. If the process dies before, the claim is void: whoever wants to
   start the message sees that the response has ended without it.
3. Their places are removed from the line. If that fails, the worker removes them.

The numbers of merged items are fixed by the record, so that a resumed response and each reader name them alike.
The items have no output index and are not in the stream, because output has no user's message, and a gap would break
clients that accumulate events. A request is not run again if the response fails: its client has seen the failure.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from stint.domain.errors import StoreUnavailable
from stint.domain.ids import merged_name
from stint.domain.openai.conversations import StoredItem
from stint.domain.openai.items import PREFIXES, Item, ItemReference, Message
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.stored_responses import MergedInput, ResponseHeader, StoredResponse
from stint.domain.waiting_messages import WaitingPlace
from stint.loop.transcript import Transcript
from stint.services.conversations.item_files import is_read, parts_of
from stint.services.responses.items_to_messages import MessageBuilder
from stint.services.responses.masking import masked_settings
from stint.services.responses.output_items import output_of
from stint.services.runs.senders import name_sender
from stint.spending.waiting import admit_message
from stint.store.waiting_line import WaitingLine

MOST_ITEMS = 10_000
"""Maximum items that a response takes: their numbers have four digits."""


def message_of(response_id: str) -> str:
    """Return the id of the message with the digits of a response's id."""
    return str(UUID(response_id.removeprefix("resp_")))


def is_mergeable(request: CreateResponse) -> bool:
    """Return whether a running response with the same settings can take a request, which has only messages.

    Files are read when a response starts, so a request with files needs one of its own.
    """
    plain = request.store and request.expires_after is None
    return plain and bool(request.input) and all(is_message(item) for item in request.input)


def is_message(item: Item | ItemReference) -> bool:
    """Return whether an item is a message to the model without files."""
    if not isinstance(item, Message) or item.role == "assistant":
        return False
    return not any(is_read(part) for _, _, part in parts_of([item], ""))


def has_settings_of(request: CreateResponse, running: ResponseHeader) -> bool:
    """Return whether all that a request sets is set alike in the running response."""
    if request.model not in (None, running.model):
        return False
    settings = masked_settings(running.settings)
    return all(
        value in (None, [], {}) or value == getattr(settings, name)
        for name, value in masked_settings(request.to_settings())
    )


@asynccontextmanager
async def take_requests(
    line: WaitingLine, running: StoredResponse, skipped: int
) -> AsyncGenerator[list[MergedInput], None]:
    """Claim the waiting requests of the current caller for a response, and remove them from the line after the body.

    `skipped` is the number of output indexes that the next record skips. The body stores the requests. If it fails,
    another process finds that the response does not have them. Those that cannot be claimed while the store fails get
    responses of their own.
    """
    taken: list[MergedInput] = []
    with suppress(StoreUnavailable):
        await add_claimed(taken, line, running, skipped)
    yield taken
    with suppress(StoreUnavailable):  # the requests themselves, or the worker, remove their places
        for each in taken:
            await line.remove_place(each.message_id)


async def add_claimed(taken: list[MergedInput], line: WaitingLine, running: StoredResponse, skipped: int) -> None:
    """Add the waiting requests of the current caller that could be claimed."""
    sender, own = running.header.sender or name_sender(), running.header.response_id
    places = [place for place in await line.read() if place.sender == sender]
    index = output_of(running, lambda _: "").place + skipped if places else 0
    number = len(running.merged_items)
    for place in places:
        found = await find_items(line, place, running.header, MOST_ITEMS - number)
        if found is None:
            continue
        if not await admit_message():
            break
        if await line.claim_merge(place.message_id, message_of(own)):
            items = [name_merged(item, own, index, at) for at, item in enumerate(found, number)]
            taken.append(MergedInput(message_id=place.message_id, items=items, fingerprint=place.fingerprint or None))
            number += len(items)


async def find_items(
    line: WaitingLine, place: WaitingPlace, running: ResponseHeader, most: int
) -> Sequence[Item] | None:
    """Return the items of a request that a response may take.

    Return None if it needs a response of its own, another response has claimed it, or it was cancelled.
    """
    state = await line.get(place.message_id)
    if state is None or state.is_over:
        return None
    request = CreateResponse.model_validate_json(state.message.body)
    items = [item for item in request.input if not isinstance(item, ItemReference)]
    return items if len(items) <= most and has_settings_of(request, running) else None


def name_merged(item: Item, response_id: str, index: int, number: int) -> Item:
    """Return an item with an id that sorts before the response's output item at `index`."""
    name = merged_name(PREFIXES[item.type], response_id.partition("_")[2], index, number)
    return item.model_copy(update={"id": name})


def append_merged(transcript: Transcript, merged: MergedInput) -> None:
    """Append the messages of a merged request."""
    MessageBuilder(transcript).append_items({place: StoredItem(item=item) for place, item in enumerate(merged.items)})
