"""Webhook endpoints, in the partition of the tenant's registrations, which each run reads whole.

The sort key of an endpoint has the number of a place, not its id. There are MOST_ENDPOINTS places, and each is taken
under a condition, so that requests at the same time cannot exceed the limit. A tenant has few endpoints, so one is
found by reading all. An endpoint is replaced as it was read: the `nonce` of its record is the condition.
"""

from contextlib import suppress

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.domain.webhooks import MOST_ENDPOINTS, StoredWebhookEndpoint
from stint.store import keys
from stint.store.documents import Documents
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.table import Table

KIND = "webhook_endpoint"
"""The kind in the sort key."""


@dataclass(frozen=True, slots=True)
class FoundEndpoint:
    """An endpoint as it was read, with its record."""

    stored: StoredWebhookEndpoint
    item: Item


class WebhookEndpointStore:
    """The endpoints of all tenants."""

    def __init__(self, table: Table, documents: Documents) -> None:
        self._table = table
        self._documents = documents

    async def create(self, tenant: str, stored: StoredWebhookEndpoint) -> None:
        """Store a new endpoint. Raises Conflict if all places are taken."""
        taken = {found.item["sk"] for found in await self.list(tenant)}
        for place in range(MOST_ENDPOINTS):
            key = keys.registration(tenant, KIND, str(place))
            if key.sk in taken:
                continue
            try:
                await self._documents.put_new(key._asdict(), stored, keys.registration_blobs(tenant))
            except ConditionFailed:  # a request at the same time took the place
                continue
            return
        raise Conflict(
            f"The tenant has {MOST_ENDPOINTS} webhook endpoints, the maximum. Delete one of them first.",
            code="too_many_webhook_endpoints",
        )

    async def list(self, tenant: str) -> "list[FoundEndpoint]":
        """Return the endpoints, the newest first."""
        items = [item async for item in self._table.query(keys.registrations(tenant), prefix=f"{KIND}:")]
        documents = await self._documents.read(items)
        found = [
            FoundEndpoint(StoredWebhookEndpoint.model_validate_json(raw), item)
            for raw, item in zip(documents, items, strict=True)
        ]
        return sorted(found, key=lambda each: each.stored.resource.id, reverse=True)

    async def get(self, tenant: str, endpoint_id: str) -> FoundEndpoint:
        """Return an endpoint. Raises NotFound."""
        for found in await self.list(tenant):
            if found.stored.resource.id == endpoint_id:
                return found
        raise NotFound("Webhook endpoint", endpoint_id)

    async def replace(self, tenant: str, found: FoundEndpoint, stored: StoredWebhookEndpoint) -> None:
        """Replace an endpoint that was read. Raises Conflict if it was changed or deleted since."""
        key = Key(found.item["pk"], found.item["sk"])
        values = {":nonce": found.item["nonce"]}
        try:
            await self._documents.put_new(
                key._asdict(), stored, keys.registration_blobs(tenant), condition="nonce = :nonce", values=values
            )
        except ConditionFailed:
            raise Conflict(
                f"The webhook endpoint {stored.resource.id!r} was changed meanwhile. Try again.",
                code="webhook_endpoint_changed",
            ) from None

    async def delete(self, tenant: str, endpoint_id: str) -> None:
        """Delete an endpoint, whatever is changed at the same time. Raises NotFound if there is none."""
        found = await self.get(tenant, endpoint_id)
        with suppress(NotFound):
            while True:
                # Under the condition that it is the same endpoint: a new one may take the place.
                key, values = Key(found.item["pk"], found.item["sk"]), {":nonce": found.item["nonce"]}
                await self._table.delete(key, condition="nonce = :nonce", values=values)
                found = await self.get(tenant, endpoint_id)
