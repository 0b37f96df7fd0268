"""Composition of API keys and authentication. Nothing is made before the first request."""

from collections.abc import Callable
from functools import cached_property

from stint.bootstrap.restore import Parts
from stint.services.access.api_keys import ApiKeys
from stint.services.access.credentials import Authentication
from stint.settings import Settings
from stint.store.api_keys import ApiKeyStore
from stint.store.clients import make_dynamodb
from stint.store.table import Table


class AccessComposition(Parts):
    """The parts of one process, each made when first used."""

    def __init__(self, read_settings: Callable[[], Settings]) -> None:
        self.read_settings = read_settings

    @cached_property
    def settings(self) -> Settings:
        return self.read_settings()

    @cached_property
    def api_keys(self) -> ApiKeys:
        return ApiKeys(ApiKeyStore(Table(make_dynamodb(), self.settings.keys_table)))

    @cached_property
    def authentication(self) -> Authentication:
        return Authentication(self.api_keys if self.settings.keys_table else None, None)
