"""Composition of the vaults of a tenant. Requests and turns that use them load this module."""

from stint.bootstrap.adapters import Adapters
from stint.dataclasses import dataclass
from stint.services.deletions import Deletions
from stint.services.vaults.bound_credentials import BoundCredentials
from stint.services.vaults.token_refresh import TokenRefresher
from stint.services.vaults.vault_secrets import VaultSecrets
from stint.services.vaults.vaults import Vaults
from stint.store.store import Store


@dataclass(frozen=True, slots=True)
class VaultParts:
    """The use cases of vaults, and the binder of their credentials to calls."""

    vaults: Vaults
    binder: BoundCredentials


def compose_vaults(tenant: str, adapters: Adapters, store: Store, deletions: Deletions) -> VaultParts:
    """Make the use cases of a tenant."""
    secrets = VaultSecrets(tenant, adapters.credential_cipher)
    refresher = TokenRefresher(tenant, store.vaults, secrets, adapters.guard)
    return VaultParts(
        vaults=Vaults(tenant, store.vaults, secrets, adapters.guard, deletions),
        binder=BoundCredentials(tenant, store.vaults, secrets, refresher),
    )
