"""Composition of administration: of an operator's commands, and of their routes. Each part is made when first used."""

from functools import cached_property
from typing import TYPE_CHECKING

from stint.apis.admin import AdminServices
from stint.aws.dynamodb import DynamoDBClient
from stint.bootstrap.restore import Composition
from stint.lazy import Lazy, lazy
from stint.services.access.api_keys import ApiKeys
from stint.services.access.key_administration import KeyAdministration
from stint.services.access.run_administration import RunAdministration
from stint.services.access.stop_administration import StopAdministration, Stops
from stint.store.api_keys import ApiKeyStore
from stint.store.blobs import Blobs
from stint.store.clients import make_bucket, make_dynamodb
from stint.store.documents import Documents
from stint.store.running_runs import RunningRunStore
from stint.store.stops import StopStore
from stint.store.store import Store
from stint.store.table import Table

if TYPE_CHECKING:  # loaded by the first request with a key
    from stint.store.api_keys import AllApiKeys
    from stint.store.idempotent_requests import RequestRecords


class OperatorComposition(Composition):
    """The parts of one process."""

    @cached_property
    def api_keys(self) -> ApiKeys:
        return ApiKeys(ApiKeyStore(Table(self.dynamodb, self.settings.keys_table)))

    all_api_keys: "Lazy[OperatorComposition, AllApiKeys]" = lazy(
        "stint.store.api_keys:AllApiKeys", lambda self, cls: cls(self.dynamodb, self.settings.keys_table)
    )

    @cached_property
    def stops(self) -> Stops:
        return Stops(self.stop_store, self.api_keys)

    @cached_property
    def stop_store(self) -> StopStore:
        return StopStore(self.dynamodb, self.settings.table, self.settings.key_layout)

    @cached_property
    def running_runs(self) -> RunningRunStore:
        return RunningRunStore(Table(self.dynamodb, self.settings.table))

    @cached_property
    def store(self) -> Store:
        bucket = make_bucket(self.settings.bucket)
        return Store(self.dynamodb, self.settings.table, bucket, self.settings.key_layout)

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        return make_dynamodb()

    def make_services(self, tenant: str) -> AdminServices:
        keys = self.key_administration
        stops, runs = StopAdministration(self.stops, keys), RunAdministration(self.running_runs, keys)
        return AdminServices(
            tenant,
            keys,
            stops,
            runs,
            find_records=lambda: self.request_records,
            lease_seconds=self.settings.lease_seconds,
        )

    @cached_property
    def key_administration(self) -> KeyAdministration:
        return KeyAdministration(
            self.api_keys, self.settings.operator_tenant, self.stop_store, self.settings.max_key_days
        )

    @cached_property
    def request_records(self) -> "RequestRecords":
        """Return the records of requests with an idempotency key. Their answers fit into an item."""
        from stint.store import idempotent_requests, keys  # noqa: PLC0415 - few requests have a key

        table, blobs = Table(self.dynamodb, self.settings.table), Blobs(make_bucket(self.settings.bucket))
        return idempotent_requests.RequestRecords(table, Documents(table, blobs), keys.admin_idempotency)
