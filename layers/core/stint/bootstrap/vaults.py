"""Composition of the vaults of a tenant. Requests and turns that use them load this module."""

from stint.bootstrap.adapters import Adapters
from stint.services.deletions import Deletions
from stint.services.vaults.bound_credentials import BoundCredentials
from stint.services.vaults.token_refresh import TokenRefresher
from stint.services.vaults.vault_secrets import VaultSecrets
from stint.services.vaults.vaults import Vaults
from stint.store.store import Store


def compose_vaults(tenant: str, adapters: Adapters, store: Store, deletions: Deletions) -> Vaults:
    """Make the use cases of vaults."""
    secrets = VaultSecrets(tenant, adapters.credential_cipher)
    return Vaults(tenant, store.vaults, secrets, adapters.guard, deletions)


def compose_bound_credentials(tenant: str, adapters: Adapters, store: Store) -> BoundCredentials:
    """Make the binder of credentials to calls of MCP servers."""
    secrets = VaultSecrets(tenant, adapters.credential_cipher)
    refresher = TokenRefresher(tenant, store.vaults, secrets, adapters.guard)
    return BoundCredentials(tenant, store.vaults, secrets, refresher)
