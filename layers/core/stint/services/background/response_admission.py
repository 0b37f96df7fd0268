"""Admission of responses to conversations in use."""

from stint.services.admission import Admission
from stint.services.background.cancellation import ResponseCancellation


def admit_responses(cancellation: ResponseCancellation, conversation_id: str) -> Admission:
    """Return the admission to a conversation."""
    tenant, store = cancellation.tenant, cancellation.store

    async def find_running() -> str | None:
        return await store.conversation_leases.find_holder(tenant, conversation_id)

    async def is_free() -> bool:
        return await find_running() is None

    async def interrupt() -> None:
        running = await find_running()
        if running is not None:
            await cancellation.cancel(running)

    return Admission(store.conversation_line(tenant, conversation_id), is_free, interrupt)
