"""Composition of administration: of an operator's commands, and of their routes. Each part is made when first used."""

from functools import cached_property, partial
from typing import TYPE_CHECKING

from stint.apis.admin import AdminServices
from stint.aws.dynamodb import DynamoDBClient
from stint.bootstrap.restore import Composition
from stint.services.access.api_keys import ApiKeys
from stint.services.access.key_administration import KeyAdministration
from stint.services.access.stop_administration import StopAdministration, Stops
from stint.store.api_keys import ApiKeyStore
from stint.store.clients import make_dynamodb, make_s3
from stint.store.run_signals import StopStore
from stint.store.store import Store
from stint.store.table import Table

if TYPE_CHECKING:  # loaded by the first request with a key
    from stint.services.idempotency.requests import IdempotentRequests
    from stint.store.api_keys import AllApiKeys


class OperatorComposition(Composition):
    """The parts of one process."""

    @cached_property
    def api_keys(self) -> ApiKeys:
        return ApiKeys(ApiKeyStore(Table(self.dynamodb, self.settings.keys_table)))

    @cached_property
    def all_api_keys(self) -> "AllApiKeys":
        from stint.store.api_keys import AllApiKeys  # noqa: PLC0415 - only a command reads them

        return AllApiKeys(self.dynamodb, self.settings.keys_table)

    @cached_property
    def stops(self) -> Stops:
        return Stops(self.stop_store, self.api_keys)

    @cached_property
    def stop_store(self) -> StopStore:
        return StopStore(self.dynamodb, self.settings.table)

    @cached_property
    def store(self) -> Store:
        return Store(self.dynamodb, self.settings.table, make_s3, self.settings.bucket)

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        return make_dynamodb()

    def make_services(self, tenant: str) -> AdminServices:
        """Return the services of a caller's tenant. Only its idempotency keys are its own."""
        keys = self.key_administration
        return AdminServices(keys, StopAdministration(self.stops, keys), partial(self.compose_requests, tenant))

    @cached_property
    def key_administration(self) -> KeyAdministration:
        return KeyAdministration(
            self.api_keys, self.settings.operator_tenant, self.stop_store, self.settings.max_key_days
        )

    def compose_requests(self, tenant: str) -> "IdempotentRequests":
        """Make the use cases of requests with an idempotency key. Their answers fit into an item."""
        from stint.services.idempotency.requests import IdempotentRequests  # noqa: PLC0415 - see above
        from stint.store.blobs import Blobs  # noqa: PLC0415
        from stint.store.documents import Documents  # noqa: PLC0415
        from stint.store.idempotent_requests import RequestRecords  # noqa: PLC0415
        from stint.store.keys import admin_idempotency  # noqa: PLC0415

        table = Table(self.dynamodb, self.settings.table)
        documents = Documents(table, Blobs(make_s3, self.settings.bucket))
        records = RequestRecords(table, documents, admin_idempotency)
        return IdempotentRequests(tenant, records, self.settings.lease_seconds)
