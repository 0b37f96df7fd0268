"""The objects of end users, as an administrator reads and deletes them."""

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import cast

from stint.domain.end_users import OwnedKind, OwnedObject
from stint.store import keys
from stint.store.items import Item
from stint.store.keys import Key, chat_completion
from stint.store.owners import add_owners, hash_user, user_object, user_objects
from stint.store.records import mark_deleted
from stint.store.session_records import SessionRecords
from stint.store.table import GET_BATCH, Table, take

UNSTORED_SECONDS = 60
"""Age from which an entry without an object is removed: a request stores the object right after its entry."""

RECORDS: Mapping[OwnedKind, Callable[..., Key]] = {
    "session": keys.session,
    "response": keys.response,
    "conversation": keys.conversation,
    "chat_completion": chat_completion,
    "file": keys.file,
    "upload": keys.upload,
    "vector_store": keys.vector_store,
    "vector_store_document": keys.vector_store_document,
    "idempotent_request": keys.idempotency,
    "container": keys.container,
    "vault": keys.vault,
    "automation": keys.automation,
}


class EndUserIndex:
    """The entries of the end users of all tenants."""

    def __init__(self, table: Table, sessions: SessionRecords) -> None:
        self._table = table
        self._sessions = sessions

    async def entries(self, tenant: str, user: str, after: str | None = None) -> AsyncGenerator[list[Item], None]:
        """Yield the entries of an end user in the order of their keys, up to 100 per step."""
        items = self._table.query(user_objects(tenant, hash_user(user)), after=after)
        while some := await take(items, GET_BATCH):
            yield some

    async def records(self, tenant: str, objects: Sequence[OwnedObject]) -> dict[Key, Item]:
        """Return the marks of the objects that have a record."""
        wanted = [record_key(tenant, each) for each in objects]
        states = {
            keys.session_state(tenant, *each.ids): record_key(tenant, each)
            for each in objects
            if each.kind == "session"
        }
        found = await self._table.get_many([*wanted, *states], "deleted_at, expires_at, sealed_at, vector_db_id, phase")
        for key, entry in states.items():
            state = found.pop(key, {})
            if entry in found and "vector_db_id" in state:
                found[entry]["vector_db_id"] = state["vector_db_id"]
        return found

    async def mark_deleted(self, tenant: str, owned: OwnedObject) -> None:
        """Hide an object from all reads at once. Nothing if it has no record."""
        if owned.kind == "session":
            await self._sessions.mark_deleted(tenant, *owned.ids)
        else:
            await mark_deleted(self._table, record_key(tenant, owned))

    async def add(self, tenant: str, user: str, owned: OwnedObject) -> None:
        """Add an object that exists to those of an end user."""
        await add_owners(self._table, tenant, [user], owned.kind, *owned.ids)

    async def remove(self, tenant: str, user: str, owned: OwnedObject) -> None:
        """Remove the entry of an object without a record."""
        await self._table.delete(user_object(tenant, hash_user(user), owned.kind, owned.ids))


def record_key(tenant: str, owned: OwnedObject) -> Key:
    """Return the key of an object's record."""
    return RECORDS[owned.kind](tenant, *owned.ids)


def owned_object(entry: Item) -> OwnedObject:
    """Return the object of an entry."""
    kind, *ids = entry["sk"].split(":")
    return OwnedObject.of(cast("OwnedKind", kind), tuple(ids))


def is_recent(entry: Item) -> bool:
    """Return whether the object of an entry may still be stored."""
    return int(entry["created_at"]) + UNSTORED_SECONDS > time.time()
