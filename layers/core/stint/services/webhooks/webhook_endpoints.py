"""Webhook endpoints of a tenant: create, read, change, rotate their secrets, and try them.

A signing secret is shown once, when it is made, and is stored only encrypted. While it is rotated, both secrets sign,
so that a receiver can change without losing an event. A URL is checked when it is set, for its owner to learn of an
error, and again at each delivery, because the address of its host may change.
"""

import time
from contextlib import suppress

from stint.caller import find_attempt, next_object_id
from stint.dataclasses import dataclass
from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.ids import name_of, new_name
from stint.domain.paging import Page
from stint.domain.webhooks import (
    CreateWebhookEndpoint,
    StoredWebhookEndpoint,
    UpdateWebhookEndpoint,
    WebhookEndpoint,
    WebhookEndpointTestResult,
    WebhookEndpointWithSecret,
)
from stint.net.guard import Guard
from stint.net.secret_requests import EndpointFailed, check_target
from stint.net.webhook_requests import post_webhook
from stint.services.runs.webhook_events import Data, of_session
from stint.services.webhooks.signatures import hint_of, new_signing_secret, sign, write_body
from stint.services.webhooks.signing_secrets import SigningSecrets
from stint.store.webhook_endpoints import FoundEndpoint, WebhookEndpointStore

OVERLAP_SECONDS = 86_400
"""Seconds for which the previous secret signs, too, if a rotation keeps it."""


@dataclass(frozen=True, slots=True)
class WebhookEndpoints:
    """The endpoints of a tenant."""

    tenant: str
    store: WebhookEndpointStore
    secrets: SigningSecrets
    guard: Guard

    async def create(self, request: CreateWebhookEndpoint) -> WebhookEndpointWithSecret:
        """Create an endpoint, and return it with its secret.

        If a request with the same idempotency key has created it, and its secret was not returned, it gets another one.

        Raises:
            InvalidRequest: the stack has no key for the secret, or the URL is refused.
            Conflict: the tenant has MOST_ENDPOINTS already.
        """
        self.secrets.require_key()
        await check_target(self.guard, request.url, "url")
        endpoint_id = name_of("we", next_object_id())
        # The secret is nowhere in clear, so a repetition gets another one.
        if find_attempt().repeated:
            with suppress(NotFound):
                return await self.rotate_secret(endpoint_id, keeps_previous=False)
        now, secret = int(time.time()), new_signing_secret()
        resource = WebhookEndpoint(
            id=endpoint_id,
            created_at=now,
            updated_at=now,
            name=request.name,
            url=request.url,
            event_types=request.event_types,
            signing_secret_hint=hint_of(secret),
        )
        sealed = await self.secrets.encrypt(resource.id, secret)
        await self.store.create(self.tenant, StoredWebhookEndpoint(resource=resource, sealed=sealed))
        return WebhookEndpointWithSecret(**dict(resource), signing_secret=secret)

    async def list(self, after: str | None, limit: int) -> Page[WebhookEndpoint]:
        """List endpoints, the newest first. Raises NotFound if there is no endpoint `after`."""
        found = [each.stored.resource for each in await self.store.list(self.tenant)]
        if after is not None:
            ids = [each.id for each in found]
            if after not in ids:
                raise NotFound("Webhook endpoint", after)
            found = found[ids.index(after) + 1 :]
        return Page(found[:limit], len(found) > limit)

    async def get(self, endpoint_id: str) -> WebhookEndpoint:
        """Return an endpoint. Raises NotFound."""
        return (await self.store.get(self.tenant, endpoint_id)).stored.resource

    async def update(self, endpoint_id: str, request: UpdateWebhookEndpoint) -> WebhookEndpoint:
        """Change an endpoint. Raises NotFound, Conflict, or InvalidRequest for a refused URL."""
        found = await self.store.get(self.tenant, endpoint_id)
        if request.url is not None:
            await check_target(self.guard, request.url, "url")
        given = request.model_dump(include={"name", "url", "event_types"}, exclude_none=True)
        changes = given | {"status": request.status, "failing_since": None}
        return await self.replace(found, found.stored.model_copy(update={"resource": changed(found, changes)}))

    async def delete(self, endpoint_id: str) -> None:
        """Delete an endpoint. Events that wait for it are dropped. Raises NotFound."""
        await self.store.delete(self.tenant, endpoint_id)

    async def rotate_secret(self, endpoint_id: str, *, keeps_previous: bool) -> WebhookEndpointWithSecret:
        """Replace the secret of an endpoint. The previous one signs for another day, too, if it is kept.

        Raises NotFound, Conflict, or InvalidRequest if the stack has no key.
        """
        found, secret = await self.store.get(self.tenant, endpoint_id), new_signing_secret()
        update = {
            "resource": changed(found, {"signing_secret_hint": hint_of(secret)}),
            "sealed": await self.secrets.encrypt(endpoint_id, secret),
            "previous_sealed": found.stored.sealed if keeps_previous else None,
            "previous_until": int(time.time()) + OVERLAP_SECONDS if keeps_previous else 0,
        }
        resource = await self.replace(found, found.stored.model_copy(update=update))
        return WebhookEndpointWithSecret(**dict(resource), signing_secret=secret)

    async def send_test(self, endpoint_id: str, kind: str) -> WebhookEndpointTestResult:
        """Send a sample event now, and return the status of the answer. Raises NotFound, or InvalidRequest."""
        stored = (await self.store.get(self.tenant, endpoint_id)).stored
        event_id, now = new_name("evt"), int(time.time())
        body = write_body(event_id, kind, now, sample_data(kind))
        headers = sign(await self.secrets.read(stored), event_id, now, body)
        try:
            status = await post_webhook(self.guard, stored.resource.url, headers, body)
        except EndpointFailed as error:
            message = f"The webhook endpoint gave no answer: {error}. Check its URL, and that it is running."
            raise InvalidRequest(message, code="webhook_endpoint_unreachable") from None
        return WebhookEndpointTestResult(webhook_endpoint_id=endpoint_id, event_type=kind, status_code=status)

    async def replace(self, found: FoundEndpoint, stored: StoredWebhookEndpoint) -> WebhookEndpoint:
        await self.store.replace(self.tenant, found, stored)
        return stored.resource


def changed(found: FoundEndpoint, update: dict[str, object]) -> WebhookEndpoint:
    """Return an endpoint with changes, and with the time of a change if there is one."""
    before = found.stored.resource
    after = before.model_copy(update=update)
    return before if after == before else after.model_copy(update={"updated_at": int(time.time())})


def sample_data(kind: str) -> Data:
    """Return the data of a sample event. Its ids are of nothing."""
    session = of_session(new_name("sample_session"))
    if kind.startswith("response."):
        return {"id": new_name("resp")}
    if kind.startswith("agent.session.turn."):
        ids = {name: new_name(f"sample_{name}") for name in ("session_id", "agent_id")}
        return {"id": new_name("sample_turn"), **ids, "status": kind.rpartition(".")[2]}
    if kind == "agent.session.action_required":
        return {"id": session["id"], "required_action": {"type": "function_call"}}
    return session
