"""Composition of administration: of an operator's commands, and of their routes. Each part is made when first used."""

from functools import cached_property

from stint.aws.dynamodb import DynamoDBClient
from stint.bootstrap.restore import Parts
from stint.services.access.api_keys import ApiKeys
from stint.services.access.key_administration import KeyAdministration
from stint.services.access.stop_administration import StopAdministration, Stops
from stint.services.admin_api import AdminServices
from stint.store.api_keys import ApiKeyStore
from stint.store.clients import make_dynamodb
from stint.store.stops import StopStore
from stint.store.table import Table


class OperatorComposition(Parts):
    """The parts of one process."""

    @cached_property
    def api_keys(self) -> ApiKeys:
        return ApiKeys(ApiKeyStore(Table(self.dynamodb, self.settings.keys_table)))

    @cached_property
    def stops(self) -> Stops:
        return Stops(StopStore(self.dynamodb, self.settings.table), self.api_keys)

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        return make_dynamodb()

    def make_services(self, _: str) -> AdminServices:
        """Return the services, which are the same for all tenants."""
        return self.services

    @cached_property
    def services(self) -> AdminServices:
        keys = KeyAdministration(self.api_keys, self.settings.operator_tenant)
        return AdminServices(keys, StopAdministration(self.stops, keys))
