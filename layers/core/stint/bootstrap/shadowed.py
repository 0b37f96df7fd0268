"""Composition of the comparison of registrations with the configuration, for a command. No function imports it."""

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.defaults import configured, providers
from stint.services.registry.configured_names import ConfiguredNames
from stint.services.registry.shadowed import ShadowedRegistrations
from stint.settings import Settings
from stint.store.store import Store


def make_shadowed_registrations(settings: Settings, store: Store, tenant: str) -> ShadowedRegistrations:
    """Return the registrations of a tenant over which the configuration of the settings wins."""
    adapters = Adapters(settings)
    names = ConfiguredNames(configured(settings, adapters.router), adapters.router, providers(settings).data)
    asking = frozenset(name for name, each in adapters.shield_providers.items() if each.asks_model)
    return ShadowedRegistrations(tenant, store.registrations, names, asking)
