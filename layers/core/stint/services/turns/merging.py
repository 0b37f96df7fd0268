"""Messages that the running turn takes before its next model call."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from stint.domain.errors import StoreUnavailable
from stint.domain.llama_stack.stored_turns import MergedMessage
from stint.domain.llama_stack.turns import TurnCreateRequest
from stint.domain.waiting_messages import MessageState, WaitingPlace
from stint.services.runs.senders import name_sender
from stint.spending.waiting import admit_message
from stint.store.waiting_line import WaitingLine

MESSAGES_ONLY = {"messages", "stream", "when_busy", "on_disconnect"}
"""The fields of a request that another turn can take. With others it needs a turn of its own."""


def is_mergeable(request: TurnCreateRequest) -> bool:
    """Return whether the running turn can take a request, which has only messages."""
    return all(value in (None, []) for name, value in request if name not in MESSAGES_ONLY)


@asynccontextmanager
async def take_messages(line: WaitingLine, turn_id: str) -> AsyncGenerator[list[MergedMessage], None]:
    """Claim the waiting messages of the current caller for a turn, and remove them from the line after the body.

    Each counts as a request of the caller. From the first one that a budget refuses, they still wait. The body stores
    them. If it fails, another process finds that the turn does not have them. Those that cannot be claimed while the
    store fails get turns of their own.
    """
    merged: list[MergedMessage] = []
    with suppress(StoreUnavailable):
        await add_claimed(merged, line, turn_id)
    yield merged
    with suppress(StoreUnavailable):  # the requests themselves, or the worker, remove their places
        for message in merged:
            await line.remove_place(message.message_id)


async def add_claimed(merged: list[MergedMessage], line: WaitingLine, turn_id: str) -> None:
    """Add the waiting messages of the current caller that could be claimed."""
    sender = name_sender()
    for place in await line.read():
        state = await line.get(place.message_id) if place.sender == sender else None
        if state is None or state.is_over:
            continue
        if not await admit_message():
            break
        if await line.claim_merge(place.message_id, turn_id):
            merged.append(to_merged(place, state))


def to_merged(place: WaitingPlace, state: MessageState) -> MergedMessage:
    """Return a message as a part of the turn that has claimed it."""
    request = TurnCreateRequest.model_validate_json(state.message.body)
    return MergedMessage(message_id=place.message_id, input_messages=request.messages, fingerprint=place.fingerprint)
