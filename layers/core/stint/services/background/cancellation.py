"""Cancellation of responses, wherever they run, and heartbeats of their clients."""

from stint.dataclasses import dataclass
from stint.domain.openai.response_resource import Response
from stint.domain.openai.stored_responses import StoredResponse
from stint.domain.run_signals import HeartbeatReceived
from stint.services.responses.read import to_resource
from stint.services.responses.recovery import Recovery, cancelled
from stint.services.runs.polling_pauses import poll
from stint.store.store import Store

ENDING_SECONDS = 3.0
"""Seconds in which the process of a cancelled foreground response ends it. After them, it is ended without it."""


@dataclass(frozen=True, slots=True)
class ResponseCancellation:
    """Cancels the responses of a tenant."""

    tenant: str
    store: Store
    recovery: Recovery

    async def cancel(self, response_id: str) -> Response:
        """Cancel a response, and return it when it has ended. One that has ended is unchanged. Raises NotFound."""
        stored = await self.store.responses.get(self.tenant, response_id)
        if stored.ending is None and stored.header.background:
            await self.store.response_leases.cancel(self.tenant, response_id)
            stored = await self.recovery.end_response(stored, cancelled)
        elif stored.ending is None:
            stored = await self.cancel_in_foreground(stored)
        return to_resource(stored, self.recovery.opaque.encode)

    async def receive_heartbeat(self, response_id: str) -> HeartbeatReceived:
        """Note that the client of a response is there. Without effect on one that has ended, or in the background.

        Raises:
            NotFound: there is no such response.
        """
        signals = self.store.run_signals
        if not await signals.put_next_heartbeat(self.tenant, response_id):
            stored = await self.store.responses.get(self.tenant, response_id)
            if stored.ending is None and not stored.header.background:
                await signals.put_first_heartbeat(self.tenant, response_id)
        return HeartbeatReceived()

    async def cancel_in_foreground(self, stored: StoredResponse) -> StoredResponse:
        """Cancel a response in the process that runs it. If that does not end it, end it here.

        Raises:
            NotFound: it was deleted in the meantime.
        """
        response_id, conversation_id = stored.header.response_id, stored.header.conversation_id
        await self.store.run_signals.cancel_response(self.tenant, response_id)
        async for _ in poll(ENDING_SECONDS):
            stored = await self.recovery.reconcile(await self.store.responses.get(self.tenant, response_id))
            if stored.ending is not None:
                return stored
        stored = await self.recovery.end_response(stored, cancelled)
        if conversation_id is not None:
            await self.store.conversation_leases.expire(self.tenant, conversation_id, response_id)
        return stored
