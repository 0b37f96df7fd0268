"""The responses that have messages which waited, by the ids of the messages."""

from collections.abc import Awaitable, Callable

from stint.domain.errors import Conflict, NotFound
from stint.domain.ids import is_name, name_of
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.stored_responses import StoredResponse
from stint.domain.waiting_messages import MessageState
from stint.services.responses.merging import message_of
from stint.services.responses.recovery import Recovery
from stint.store.store import Store

Read = Callable[[str], Awaitable[StoredResponse]]


async def read_run(
    read: Read, store: Store, tenant: str, response_id: str, state: MessageState
) -> StoredResponse | None:
    """Return the response that has a message under another id, None if none has it. `read` reads a response.

    Raises:
        NotFound: the response was deleted.
    """
    if state.cancelled or state.claimed_by is None or name_of("resp", state.claimed_by) == response_id:
        return None
    try:
        stored = await read(name_of("resp", state.claimed_by))
    except NotFound:
        if state.error is None and not await is_in_line(store, tenant, response_id, state):
            raise
        return None
    if state.merged_into is not None and stored.ending is not None and not has_message(stored, response_id):
        return None  # its process died; the worker starts the message
    return stored


async def find_run(store: Store, recovery: Recovery, tenant: str, response_id: str) -> str | None:
    """Return the id of the response that has a message; None if there is no such message, or it was not started.

    Raises:
        Conflict: the message waits, or its response is being started.
    """

    async def read(run_id: str) -> StoredResponse:
        return await recovery.reconcile(await store.responses.get(tenant, run_id))

    state = await find_state(store, tenant, response_id)
    if state is None:
        return None
    try:
        run = await read_run(read, store, tenant, response_id, state=state)
    except NotFound:
        return None
    if run is not None:
        return run.header.response_id
    if state.cancelled or state.error is not None:
        return None
    raise Conflict(f"Response {response_id} is queued: wait until it ends.", code="response_in_progress")


async def find_state(store: Store, tenant: str, response_id: str) -> MessageState | None:
    """Return the state of the message with the digits of a response's id, None if there is none."""
    if not is_name("resp", response_id):
        return None
    return await store.waiting_responses(tenant).get(message_of(response_id))


async def is_in_line(store: Store, tenant: str, response_id: str, state: MessageState) -> bool:
    """Return whether a message still waits in line, although a response has claimed it."""
    places = await store.conversation_line(tenant, conversation_of(state)).read()
    return message_of(response_id) in {place.message_id for place in places}


def conversation_of(state: MessageState) -> str:
    return CreateResponse.model_validate_json(state.message.body).conversation_id or ""


def has_message(stored: StoredResponse, response_id: str) -> bool:
    """Return whether a response has taken the message with the digits of an id."""
    return message_of(response_id) in {each.message_id for each in stored.merged}
