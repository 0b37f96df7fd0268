"""Vaults and their credentials: create, read, change, delete.

The secrets of a request are encrypted before anything is stored, and no answer has them. A request that acts for an end
user sees the vaults of that user, and those of all; a vault that it creates belongs to that user.
"""

import builtins
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from stint.caller import create_once, end_users_of, find_end_user
from stint.dataclasses import dataclass, replace
from stint.domain.errors import InvalidRequest, NotFound
from stint.domain.ids import name_of
from stint.domain.known_secrets import remember
from stint.domain.openai.vaults import (
    BearerAuth,
    ClientAuth,
    ClientSecret,
    CreateCredential,
    CreateVault,
    NewBearer,
    NewOAuth,
    OAuthAuth,
    RotatedBearer,
    RotatedOAuth,
    RotatedRefresh,
    TokenRefresh,
    UpdateCredential,
    UpdateVault,
    Vault,
    VaultCredential,
)
from stint.domain.paging import Page
from stint.domain.tasks import DeletionTask
from stint.net.guard import Guard
from stint.net.secret_requests import check_target
from stint.services.deletions import Deletions
from stint.services.vaults.vault_secrets import VaultSecrets
from stint.store.owners import hash_user
from stint.store.vaults import (
    ACCESS_TOKEN,
    CLIENT_SECRET,
    REFRESH_TOKEN,
    StoredCredential,
    StoredVault,
    VaultStore,
)

Clear = dict[str, str]
"""Secrets in clear, by their names."""


@dataclass(frozen=True, slots=True)
class Vaults:
    """The vaults of a tenant. Unknown and deleted ids, and vaults of another end user, raise NotFound."""

    tenant: str
    store: VaultStore
    secrets: VaultSecrets
    guard: Guard
    deletions: Deletions

    async def create(self, request: CreateVault) -> Vault:
        """Create a vault; for an end user if the request acts for one. A repetition with the same key returns it.

        Raises:
            InvalidRequest: the stack has no key for secrets.
            Conflict: the tenant has too many vaults.
        """
        self.secrets.require_key()

        async def find(object_id: str) -> Vault:
            return await self.get(name_of("vault", object_id))

        async def create(object_id: str) -> Vault:
            vault_id = name_of("vault", object_id)
            vault = Vault(id=vault_id, created_at=int(time.time()), name=request.name, metadata=request.metadata)
            await self.store.create(self.tenant, vault, end_users_of())
            return vault

        return await create_once(find, create)

    async def get(self, vault_id: str) -> Vault:
        return (await self.open(vault_id)).vault

    async def open(self, vault_id: str) -> StoredVault:
        """Return a vault that the caller may see."""
        stored = await self.store.get(self.tenant, vault_id)
        if not may_see(stored):
            raise NotFound("Vault", vault_id)
        return stored

    async def list(
        self, *, after: str | None, limit: int, newest_first: bool, metadata: Mapping[str, str]
    ) -> Page[Vault]:
        """List vaults by creation that have all pairs of `metadata`. Raises NotFound if there is none `after`."""

        def accepts(stored: StoredVault) -> bool:
            return may_see(stored) and metadata.items() <= stored.vault.metadata.items()

        return await self.store.list(self.tenant, after=after, limit=limit, newest_first=newest_first, accepts=accepts)

    async def update(self, vault_id: str, request: UpdateVault) -> Vault:
        """Change the given fields of a vault. Another request at the same time may change the others."""
        changes = {name: getattr(request, name) for name in request.model_fields_set}
        while True:
            found = await self.open(vault_id)
            changed = found.vault.model_copy(update=changes)
            if await self.store.replace(self.tenant, found, changed):
                return changed

    async def delete(self, vault_id: str) -> None:
        """Delete a vault with its credentials. When this returns, no turn gets one of them any more."""
        await self.open(vault_id)
        task = DeletionTask(kind="delete_vault", tenant=self.tenant, vault_id=vault_id)
        await self.deletions.start_deletion(task, partial(self.store.mark_deleted, self.tenant, vault_id))

    async def check_use(self, vault_ids: builtins.list[str]) -> None:
        """Check that a new session may use vaults: those of its end user, and those of all.

        Raises:
            InvalidRequest: a vault is unknown or of another end user, or the stack has no key.
        """
        if not vault_ids:
            return
        self.secrets.require_key()
        user = find_end_user()
        owner = hash_user(user) if user else ""
        for vault_id in vault_ids:
            with suppress(NotFound):
                if (await self.store.get(self.tenant, vault_id)).serves(owner):
                    continue
            raise InvalidRequest(
                f"The vault {vault_id[:100]!r} does not exist, or does not serve the end user of this request. "
                "GET /v1/vaults lists the vaults.",
                code="vault_not_found",
                param="vault_ids",
            )

    async def create_credential(self, vault_id: str, request: CreateCredential) -> VaultCredential:
        """Create a credential. A repetition with the same key returns it.

        Raises:
            InvalidRequest: a URL may not be called, or the stack has no key for secrets.
            Conflict: the vault has too many credentials.
            StoreUnavailable: the secrets cannot be encrypted.
        """
        self.secrets.require_key()
        await self.open(vault_id)
        auth, clear = read_auth(request.auth)
        remember(clear.values())
        await check_target(self.guard, auth.mcp_server_url, "auth.mcp_server_url")
        if isinstance(auth, OAuthAuth) and auth.refresh is not None:
            await check_target(self.guard, auth.refresh.token_endpoint, "auth.refresh.token_endpoint")

        async def find(object_id: str) -> VaultCredential:
            return (await self.store.get_credential(self.tenant, vault_id, name_of("cred", object_id))).credential

        async def create(object_id: str) -> VaultCredential:
            now = int(time.time())
            credential = VaultCredential(
                id=name_of("cred", object_id),
                vault_id=vault_id,
                name=request.name,
                auth=auth,
                metadata=request.metadata,
                created_at=now,
                updated_at=now,
            )
            stored = StoredCredential(credential, await self.seal(credential, clear))
            await self.store.create_credential(self.tenant, stored)
            return credential

        return await create_once(find, create)

    async def get_credential(self, vault_id: str, credential_id: str) -> VaultCredential:
        return (await self.open_credential(vault_id, credential_id)).credential

    async def open_credential(self, vault_id: str, credential_id: str) -> StoredCredential:
        await self.open(vault_id)
        return await self.store.get_credential(self.tenant, vault_id, credential_id)

    async def list_credentials(
        self, vault_id: str, *, after: str | None, limit: int, newest_first: bool, metadata: Mapping[str, str]
    ) -> Page[VaultCredential]:
        """List credentials by creation, as `list`."""
        await self.open(vault_id)
        stored = await self.store.list_credentials(self.tenant, vault_id)
        found = [each.credential for each in stored][:: -1 if newest_first else 1]
        if after is not None:
            ids = [each.id for each in found]
            if after not in ids:
                raise NotFound("Credential", after)
            found = found[ids.index(after) + 1 :]
        found = [each for each in found if metadata.items() <= each.metadata.items()]
        return Page(found[:limit], len(found) > limit)

    async def update_credential(self, vault_id: str, credential_id: str, request: UpdateCredential) -> VaultCredential:
        """Change the given fields of a credential, whose type stays.

        Raises:
            InvalidRequest: the type is another one, a field cannot be changed, or the stack has no key.
            Conflict: it was changed at the same time, or its tokens are being renewed.
            StoreUnavailable: the secrets cannot be encrypted.
        """
        found = await self.open_credential(vault_id, credential_id)
        credential, clear = found.credential, Clear()
        if "metadata" in request.model_fields_set:
            credential = credential.model_copy(update={"metadata": request.metadata})
        if request.auth is not None:
            self.secrets.require_key()
            auth, clear = rotate_auth(credential.auth, request.auth)
            credential = credential.model_copy(update={"auth": auth})
        credential = credential.model_copy(update={"updated_at": int(time.time())})
        sealed = {**found.sealed, **await self.seal(credential, clear)}
        # A new access token says nothing about a spent refresh token. Servers end all tokens when one is sent again.
        may_renew = REFRESH_TOKEN in clear or CLIENT_SECRET in clear
        changed = replace(found, credential=credential, sealed=sealed, refused="" if may_renew else found.refused)
        await self.store.replace_credential(self.tenant, found, changed)
        return credential

    async def delete_credential(self, vault_id: str, credential_id: str) -> None:
        """Delete a credential. When this returns, no turn gets it any more."""
        await self.open(vault_id)
        await self.store.delete_credential(self.tenant, vault_id, credential_id)

    async def seal(self, credential: VaultCredential, clear: Clear) -> dict[str, str]:
        """Return encrypted secrets."""
        return {name: await self.secrets.encrypt(credential, name, secret) for name, secret in clear.items()}


def may_see(stored: StoredVault) -> bool:
    """Return whether the caller may see a vault: one without an end user sees all."""
    user = find_end_user()
    return user is None or stored.serves(hash_user(user))


def read_auth(given: NewBearer | NewOAuth) -> tuple[BearerAuth | OAuthAuth, Clear]:
    """Return what anybody may see of a new credential, and its secrets."""
    if isinstance(given, NewBearer):
        return BearerAuth(mcp_server_url=given.mcp_server_url), {ACCESS_TOKEN: given.token}
    clear, refresh = {ACCESS_TOKEN: given.access_token}, None
    if (new := given.refresh) is not None:
        clear[REFRESH_TOKEN] = new.refresh_token
        if isinstance(new.token_endpoint_auth, ClientSecret):
            clear[CLIENT_SECRET] = new.token_endpoint_auth.client_secret
        refresh = TokenRefresh(
            client_id=new.client_id,
            token_endpoint=new.token_endpoint,
            token_endpoint_auth=ClientAuth(type=new.token_endpoint_auth.type),
            scope=new.scope,
            resource=new.resource,
        )
    return OAuthAuth(mcp_server_url=given.mcp_server_url, expires_at=given.expires_at, refresh=refresh), clear


def rotate_auth(
    auth: BearerAuth | OAuthAuth, given: RotatedBearer | RotatedOAuth
) -> tuple[BearerAuth | OAuthAuth, Clear]:
    """Return a credential with the given fields, and its new secrets. Raises InvalidRequest for another type."""
    if auth.type != given.type:
        message = f"The credential is of the type {auth.type}, which cannot be changed. Create another credential."
        raise InvalidRequest(message, param="auth.type")
    if isinstance(given, RotatedBearer) or isinstance(auth, BearerAuth):
        return auth, {ACCESS_TOKEN: given.token} if isinstance(given, RotatedBearer) else {}
    clear, changes = Clear(), dict[str, object]()
    if given.access_token is not None:
        clear[ACCESS_TOKEN] = given.access_token
    # The end of the old access token says nothing about a new one.
    if "expires_at" in given.model_fields_set or given.access_token is not None:
        changes["expires_at"] = given.expires_at
    if given.refresh is not None:
        changes["refresh"] = rotate_refresh(auth.refresh, given.refresh, clear)
    return auth.model_copy(update=changes), clear


def rotate_refresh(refresh: TokenRefresh | None, given: RotatedRefresh, clear: Clear) -> TokenRefresh:
    """Return the renewal of a credential with the given fields, and add its new secrets. Raises InvalidRequest."""
    if refresh is None:
        message = "The credential cannot be renewed, and has no refresh token. Create another credential."
        raise InvalidRequest(message, param="auth.refresh")
    if given.refresh_token is not None:
        clear[REFRESH_TOKEN] = given.refresh_token
    if (client := given.token_endpoint_auth) is not None:
        if client.type != refresh.token_endpoint_auth.type:
            message = (
                f"The client logs in as {refresh.token_endpoint_auth.type}, which cannot be changed. Create another "
                "credential."
            )
            raise InvalidRequest(message, param="auth.refresh.token_endpoint_auth.type")
        if client.client_secret is not None:
            clear[CLIENT_SECRET] = client.client_secret
    return refresh.model_copy(update={"scope": given.scope} if "scope" in given.model_fields_set else {})
