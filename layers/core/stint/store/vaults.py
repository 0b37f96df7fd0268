"""Vaults and their credentials in the table.

    record                  partition         has
    vault                   T#vault           the vault, the number of its credentials, the hashes of its end users
    credential              T#vault:{vault}   the credential without secrets, each secret encrypted by itself
    number of live vaults   T#vaults          the limit of a tenant

A credential is created and deleted in one transaction with the number in its vault, whose condition is also that the
vault lives: none gets into a vault that is being deleted, and the limits hold for requests at the same time.

One process renews the tokens of a credential at a time. Its lease is in the record, and while it lasts, only its holder
changes the record:

    refresh_id, refresh_until       held         until it is released, or `refresh_until` (milliseconds) has passed
    refreshed_by                    the last     so that a repeated write of the holder knows its own record
    refresh_refused                 spent        the server refuses the refresh token; an update of the owner ends it

A holder whose lease has lapsed may still store its tokens, unless another process has the lease by then.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from stint.dataclasses import dataclass
from stint.domain.errors import Conflict, NotFound
from stint.domain.ids import new_id
from stint.domain.openai.vaults import Vault, VaultCredential
from stint.domain.paging import Page
from stint.store import keys
from stint.store.counted_records import CountedRecords, change_count
from stint.store.failures import ConditionFailed
from stint.store.items import Item
from stint.store.keys import Key
from stint.store.owners import add_owners, hash_users, remove_owners
from stint.store.records import delete_partition, is_live, read_marked
from stint.store.table import LIVE, SMALL_PAGE, Table
from stint.store.transactions import Delete, Put, TransactionCancelled, Transactions

MOST_VAULTS = 10_000
"""Maximum vaults of a tenant."""
MOST_CREDENTIALS = 20
"""Maximum credentials of a vault. A turn reads all of them."""

ACCESS_TOKEN, REFRESH_TOKEN, CLIENT_SECRET = "access_token", "refresh_token", "client_secret"
SECRETS = (ACCESS_TOKEN, REFRESH_TOKEN, CLIENT_SECRET)
"""The names of secrets. The token of a static bearer is an access token, too."""

FREE = "(attribute_not_exists(refresh_until) OR refresh_until <= :milliseconds)"
"""The condition that no process renews the tokens of a credential."""


@dataclass(frozen=True, slots=True)
class StoredVault:
    """A vault. `owners` has the hashes of the end users whom it serves alone; empty: all.

    `nonce` is that of its last change; None before the first one.
    """

    vault: Vault
    owners: frozenset[str]
    credential_count: int
    nonce: str | None = None

    def serves(self, owner: str) -> bool:
        """Return whether the vault serves sessions of an end user, by the hash; empty: sessions without one."""
        return not self.owners or owner in self.owners


@dataclass(frozen=True, slots=True)
class StoredCredential:
    """A credential with its encrypted secrets by their names. `refused` is the error code of a spent refresh token."""

    credential: VaultCredential
    sealed: Mapping[str, str]
    revision: int = 1
    refused: str = ""


class VaultStore:
    """The vaults of all tenants. Unknown and deleted ids raise NotFound."""

    def __init__(self, table: Table, transactions: Transactions) -> None:
        self._table = table
        self._transactions = transactions

    async def create(self, tenant: str, vault: Vault, users: Sequence[str] = ()) -> None:
        """Store a new vault of end users; without any, of the tenant. A repetition changes nothing.

        Raises Conflict if the tenant has MOST_VAULTS.
        """
        # Entries first: an erasure of the end user finds each vault that exists.
        await add_owners(self._table, tenant, users, "vault", vault.id)
        key = keys.vault(tenant, vault.id)
        owned: Item = {"end_users": hash_users(users)} if users else {}
        item = key._asdict() | {"doc": text_of(vault), "credential_count": 0} | owned
        await self._counted(tenant).create(item)

    async def get(self, tenant: str, vault_id: str) -> StoredVault:
        item = await self._table.get(keys.vault(tenant, vault_id))
        if not is_live(item):
            raise NotFound("Vault", vault_id)
        return stored_vault(item)

    async def get_many(self, tenant: str, vault_ids: Sequence[str]) -> dict[str, StoredVault]:
        """Return the vaults that exist, by their ids, in one call. Raises NotFound for an invalid id."""
        found = await self._table.get_many([keys.vault(tenant, vault_id) for vault_id in vault_ids])
        return {key.sk: stored_vault(item) for key, item in found.items() if is_live(item)}

    async def list(
        self,
        tenant: str,
        *,
        after: str | None,
        limit: int,
        newest_first: bool,
        accepts: Callable[[StoredVault], bool],
    ) -> Page[Vault]:
        """List vaults by creation, starting after `after`. Raises NotFound if that does not exist."""
        if after is not None and await self._table.get(keys.vault(tenant, after)) is None:
            raise NotFound("Vault", after)
        page = max(limit + 1, SMALL_PAGE)
        items = self._table.query(keys.vaults(tenant), after=after, newest_first=newest_first, page=page)
        found: list[Vault] = []
        async for item in items:
            if is_live(item) and accepts(stored := stored_vault(item)):
                found.append(stored.vault)
                if len(found) > limit:
                    break
        return Page(found[:limit], len(found) > limit)

    async def replace(self, tenant: str, found: StoredVault, changed: Vault) -> bool:
        """Write a vault that was read. Return False if it has changed since."""
        nonce, seen = new_id(), {} if found.nonce is None else {":nonce": found.nonce}
        unchanged = "nonce = :nonce" if seen else "attribute_not_exists(nonce)"
        condition, values = f"attribute_exists(pk) AND {LIVE} AND {unchanged}", {":now": int(time.time()), **seen}
        try:
            assign = {"doc": text_of(changed), "nonce": nonce}
            await self._table.update(keys.vault(tenant, changed.id), assign, condition, values)
        except ConditionFailed as failed:
            if not is_live(failed.item):
                raise NotFound("Vault", changed.id) from failed
            return bool(failed.found.get("nonce") == nonce)
        return True

    async def mark_deleted(self, tenant: str, vault_id: str) -> None:
        """Hide a vault from all reads at once, with its credentials. It may be repeated."""
        await self._counted(tenant).mark_deleted(keys.vault(tenant, vault_id), vault_id)

    def _counted(self, tenant: str) -> CountedRecords:
        return CountedRecords(self._table, self._transactions, keys.vault_count(tenant), "Vault", MOST_VAULTS)

    async def delete(self, tenant: str, vault_id: str) -> bool:
        """Delete a marked vault with its credentials, and return True. It may be repeated. Raises NotMarkedDeleted."""
        key = keys.vault(tenant, vault_id)
        item = await read_marked(self._table, key, "Vault", vault_id)
        if item is None:
            return True
        async for _ in delete_partition(self._table, keys.vault_credentials(tenant, vault_id)):
            pass
        await remove_owners(self._table, tenant, item, "vault", vault_id)
        await self._table.delete(key)
        return True

    async def create_credential(self, tenant: str, stored: StoredCredential) -> None:
        """Store a new credential. A repetition changes nothing. Raises Conflict if the vault has MOST_CREDENTIALS."""
        credential = stored.credential
        item = credential_key(tenant, credential)._asdict() | attributes_of(stored)
        await self._write_counted(tenant, credential.vault_id, Put(item), 1)

    async def delete_credential(self, tenant: str, vault_id: str, credential_id: str) -> None:
        """Delete a credential, whatever is changed at the same time."""
        key = keys.vault_credential(tenant, vault_id, credential_id)
        if not await self._write_counted(tenant, vault_id, Delete(key, "attribute_exists(pk)"), -1):
            raise NotFound("Credential", credential_id)

    async def _write_counted(self, tenant: str, vault_id: str, write: Put | Delete, change: int) -> bool:
        """Write a credential and the number of the vault's. Return False if the credential's condition fails."""
        key = keys.vault(tenant, vault_id)
        while True:
            count = (await self.get(tenant, vault_id)).credential_count
            if change > 0 and count >= MOST_CREDENTIALS:
                raise Conflict(
                    f"The vault {vault_id} has {MOST_CREDENTIALS} credentials, the maximum. Delete some of them first, "
                    "or create another vault.",
                    code="too_many_credentials",
                )
            values = {":now": int(time.time())}
            counted = change_count(key, "credential_count", count, change, f" AND {LIVE}", values)
            try:
                await self._transactions.write([write, counted])
            except TransactionCancelled as cancelled:
                if cancelled.place == 0:
                    return False
                continue
            return True

    async def get_credential(self, tenant: str, vault_id: str, credential_id: str) -> StoredCredential:
        """Return a credential. Only its own record is read: whoever needs the vault, too, reads that."""
        item = await self._table.get(keys.vault_credential(tenant, vault_id, credential_id))
        if item is None:
            raise NotFound("Credential", credential_id)
        return stored_credential(item)

    async def list_credentials(self, tenant: str, vault_id: str) -> Sequence[StoredCredential]:
        """Return the credentials of a vault by creation, without a look at the vault."""
        items: AsyncIterator[Item] = self._table.query(keys.vault_credentials(tenant, vault_id))
        return [stored_credential(item) async for item in items]

    async def replace_credential(self, tenant: str, found: StoredCredential, changed: StoredCredential) -> None:
        """Write a credential that was read. Raises Conflict if it has changed since, or is being renewed."""
        key, nonce = credential_key(tenant, found.credential), new_id()
        assign = attributes_of(changed) | {"revision": found.revision + 1, "nonce": nonce}
        assign["refresh_refused"] = changed.refused or None
        values = {":revision": found.revision, ":milliseconds": milliseconds()}
        try:
            await self._table.update(key, assign, f"revision = :revision AND {FREE}", values)
        except ConditionFailed as failed:
            if failed.item is None:
                raise NotFound("Credential", found.credential.id) from failed
            if failed.found.get("nonce") != nonce:
                raise Conflict(
                    f"The credential {found.credential.id} was changed, or its tokens are being renewed. Try again.",
                    code="credential_changed",
                ) from failed

    async def acquire_refresh(self, tenant: str, found: StoredCredential, holder: str, seconds: float) -> bool:
        """Take the lease of a credential that was read. Return False if another process has it, or has changed it."""
        now = milliseconds()
        assign = {"refresh_id": holder, "refresh_until": now + round(seconds * 1000)}
        values = {":revision": found.revision, ":milliseconds": now}
        try:
            key = credential_key(tenant, found.credential)
            await self._table.update(key, assign, f"revision = :revision AND {FREE}", values)
        except ConditionFailed as failed:
            return bool(failed.found.get("refresh_id") == holder)
        return True

    async def store_tokens(self, tenant: str, changed: StoredCredential, holder: str) -> bool:
        """Write renewed tokens, and release the lease. Return False if another process has it, or has deleted it."""
        changes = attributes_of(changed) | {"revision": changed.revision + 1, "refresh_refused": None}
        return await self._end_refresh(tenant, changed.credential, holder, changes)

    async def release_refresh(self, tenant: str, found: StoredCredential, holder: str, refused: str = "") -> None:
        """Release the lease without new tokens. `refused`: the server does not accept the refresh token any more."""
        changes = {"refresh_refused": refused} if refused else {}
        await self._end_refresh(tenant, found.credential, holder, changes)

    async def _end_refresh(self, tenant: str, credential: VaultCredential, holder: str, changes: Item) -> bool:
        assign = changes | {"refresh_id": None, "refresh_until": None, "refreshed_by": holder}
        try:
            key = credential_key(tenant, credential)
            await self._table.update(key, assign, "refresh_id = :holder", {":holder": holder})
        except ConditionFailed as failed:
            return bool(failed.found.get("refreshed_by") == holder)
        return True


def credential_key(tenant: str, credential: VaultCredential) -> Key:
    return keys.vault_credential(tenant, credential.vault_id, credential.id)


def text_of(document: Vault | VaultCredential) -> str:
    return document.to_json().decode()


def attributes_of(stored: StoredCredential) -> Item:
    """Return the attributes of a credential's record. It never loses a secret."""
    secrets = {f"sealed_{name}": text for name, text in stored.sealed.items()}
    return {"doc": text_of(stored.credential), "revision": stored.revision, **secrets}


def stored_vault(item: Item) -> StoredVault:
    owners = frozenset(item.get("end_users", "").split())
    vault = Vault.model_validate_json(item["doc"])
    return StoredVault(vault, owners, int(item["credential_count"]), item.get("nonce"))


def stored_credential(item: Item) -> StoredCredential:
    sealed = {name: item[f"sealed_{name}"] for name in SECRETS if f"sealed_{name}" in item}
    credential = VaultCredential.model_validate_json(item["doc"])
    return StoredCredential(credential, sealed, int(item["revision"]), item.get("refresh_refused", ""))


def milliseconds() -> int:
    return round(time.time() * 1000)
