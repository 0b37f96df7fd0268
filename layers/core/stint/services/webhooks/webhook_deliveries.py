"""Deliveries of webhooks, by the worker: one attempt for each message of its queue.

    the answer        the next attempt                                the endpoint
    2xx               none                                            is no longer failing
    410               none                                            is disabled
    another, or none  after the next of DELAYS, by a new message      is failing since its first failure
    after the last    none: the message fails, and SQS moves it to    is disabled after FAILING_SECONDS without success
                      the dead-letter queue, as any other

SQS delays a message by 15 minutes at most, so one that arrives before its time is sent again. An endpoint that has
failed for GRACE_SECONDS gets fewer attempts, and one that this process could not reach is left alone for
PAUSE_SECONDS: otherwise the events of one dead endpoint would keep the worker waiting for 10 s each. A delivery that
Lambda or SQS repeats has the same `webhook-id`, by which receivers know it.
"""

import logging
import time
from collections.abc import Sequence

from stint.dataclasses import dataclass, field
from stint.domain.errors import Conflict, NotFound, StintError, StoreUnavailable
from stint.domain.tasks import SendTask, WebhookTask
from stint.net.guard import Guard
from stint.net.secret_requests import EndpointFailed
from stint.net.webhook_requests import post_webhook
from stint.services.webhooks.signatures import sign, write_body
from stint.services.webhooks.signing_secrets import SigningSecrets
from stint.store.webhook_endpoints import FoundEndpoint, WebhookEndpointStore

logger = logging.getLogger(__name__)

DELAYS = (5, 300, 1_800, 7_200, 18_000, 36_000, 25_200)
"""Seconds between two attempts: 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 7 h, about a day in all."""

LONGEST_DELAY = 900
"""The longest delay of a message of SQS, in seconds."""

GRACE_SECONDS, ATTEMPTS_OF_FAILING = 86_400, 2
"""Seconds after which an endpoint that only fails gets this number of attempts for an event."""

FAILING_SECONDS = 5 * 86_400
"""Seconds after which an endpoint that only fails is disabled."""

PAUSE_SECONDS = 60.0
"""Seconds in which a process makes no attempt at an unreachable endpoint, except for the event that found it so.

The attempts of other events count as failed.
"""

GONE = 410


class Undelivered(StintError):
    """The last attempt to send an event failed."""

    code = "webhook_undelivered"


@dataclass(frozen=True, slots=True)
class WebhookDeliveries:
    """Sends the events of a tenant.

    `unreachable` has the endpoints that gave no answer, until when they rest, and the event that found it.
    """

    tenant: str
    store: WebhookEndpointStore
    secrets: SigningSecrets
    guard: Guard
    send: SendTask
    unreachable: dict[str, tuple[float, str]] = field(default_factory=dict)

    async def handle(self, task: WebhookTask) -> None:
        """Send an event that is due, or its message again. Nothing is done for a deleted or disabled endpoint.

        Raises:
            Undelivered: this was the last attempt.
            StoreUnavailable: the store or the queue failed, so that nothing is known of the attempt.
        """
        if (wait := task.due_at - time.time()) >= 1:
            await self.send(task.model_copy(update={"delay_seconds": min(int(wait), LONGEST_DELAY)}))
            return
        try:
            found = await self.store.get(self.tenant, task.endpoint_id)
        except NotFound:
            logger.info("A webhook was dropped: its endpoint was deleted")
            return
        if not found.stored.is_enabled:
            logger.info("A webhook was dropped: its endpoint is disabled")
            return
        try:
            signing = await self.secrets.read(found.stored)
        except StoreUnavailable as error:  # the endpoint is not at fault
            logger.warning("A webhook was not signed", extra={"error": error.message})
            await self.retry(task, found)
            return
        status, reason = await self.attempt(found, task, signing)
        if status is not None and 200 <= status < 300:
            await self.note(found, failing=False)
            return
        logger.warning("A webhook was not delivered", extra={"attempt": task.attempt + 1, "reason": reason})
        enabled = await self.note(found, failing=True, gone=status == GONE)
        if enabled:
            await self.retry(task, found)

    async def attempt(self, found: FoundEndpoint, task: WebhookTask, signing: Sequence[str]) -> tuple[int | None, str]:
        """Send an event once. Return the status of the answer, None without one, and why it counts as failed."""
        endpoint, now = found.stored.resource, time.time()
        until, first = self.unreachable.get(endpoint.id, (0.0, ""))
        if now < until and task.event_id != first:
            return None, "it was not reachable a moment ago"
        body = write_body(task.event_id, task.type, task.created_at, task.data)
        headers = sign(signing, task.event_id, int(now), body)
        try:
            status = await post_webhook(self.guard, endpoint.url, headers, body)
        except EndpointFailed as error:
            self.unreachable[endpoint.id] = time.time() + PAUSE_SECONDS, task.event_id
            return None, str(error)
        self.unreachable.pop(endpoint.id, None)
        return status, f"it answered {status}"

    async def note(self, found: FoundEndpoint, *, failing: bool, gone: bool = False) -> bool:
        """Note in an endpoint that it fails, or no longer. Return whether it is still enabled."""
        before, now = found.stored.resource, int(time.time())
        since = (before.failing_since or now) if failing else None
        disabled = gone or (since is not None and now - since >= FAILING_SECONDS)
        after = before.model_copy(update={"failing_since": since, "status": "disabled" if disabled else before.status})
        if after != before:
            try:
                await self.store.replace(self.tenant, found, found.stored.model_copy(update={"resource": after}))
            except (Conflict, StoreUnavailable) as error:
                # Another worker has noted it, or the owner has changed the endpoint. The next attempt notes it again.
                logger.info("The state of a webhook endpoint was not stored", extra={"error": error.message})
                return True
        if disabled:
            logger.warning("A webhook endpoint was disabled", extra={"reason": "410" if gone else "days of failures"})
        return not disabled

    async def retry(self, task: WebhookTask, found: FoundEndpoint) -> None:
        """Send the message of the next attempt. Raises Undelivered after the last one."""
        since, now = found.stored.resource.failing_since, time.time()
        delays = DELAYS[: ATTEMPTS_OF_FAILING - 1] if since is not None and now - since >= GRACE_SECONDS else DELAYS
        if task.attempt >= len(delays):
            raise Undelivered(f"The webhook {task.event_id} was not delivered to {task.endpoint_id}.")
        delay = delays[task.attempt]
        update = {"attempt": task.attempt + 1, "due_at": now + delay, "delay_seconds": min(delay, LONGEST_DELAY)}
        await self.send(task.model_copy(update=update))
