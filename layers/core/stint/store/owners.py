"""The index of end users: an entry in an end user's partition for each object that belongs to them.

The entry is written before the object, so that no object of an end user is without one. The object's record has the
hashes of its end users in `end_users`, so that its deletion deletes the entries, too. Ids of end users are not in keys.
"""

import time
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from stint.store.items import Item
from stint.store.keys import Key, checked_tenant
from stint.store.parallel import map_concurrently
from stint.store.table import Table

if TYPE_CHECKING:
    from stint.domain.end_users import OwnedKind

HASH_DIGITS = 32


def hash_user(user: str) -> str:
    """Return the hash of an end user's id, which keys have in its place."""
    return sha256(user.encode(errors="surrogatepass")).hexdigest()[:HASH_DIGITS]


def hash_users(users: Sequence[str]) -> str:
    """Return the hashes of end users, each once, as a record has them."""
    return " ".join(sorted({hash_user(user) for user in users}))


def user_objects(tenant: str, user_hash: str) -> str:
    """The partition of an end user's objects."""
    return f"{checked_tenant(tenant)}#user:{user_hash}"


def user_object(tenant: str, user_hash: str, kind: "OwnedKind", ids: Sequence[str]) -> Key:
    return Key(user_objects(tenant, user_hash), ":".join((kind, *ids)))


async def add_owners(
    table: Table, tenant: str, users: Sequence[str], kind: "OwnedKind", *ids: str, expires_at: int | None = None
) -> Item:
    """Write the entries of a new object, a unit each, and return the attribute of its record. Nothing without users."""
    return await add_entries(table, tenant, hash_users(users), kind, *ids, expires_at=expires_at)


async def add_entries(
    table: Table, tenant: str, owners: str, kind: "OwnedKind", *ids: str, expires_at: int | None = None
) -> Item:
    """Write entries as `add_owners`, for the hashes that another record has."""
    hashes = owners.split()
    if not hashes:
        return {}
    # The entry expires with its object. Without an end, the deletion of the object removes it.
    own: Item = {"created_at": int(time.time())} | ({} if expires_at is None else {"expires_at": expires_at})
    await map_concurrently(table.put, [user_object(tenant, each, kind, ids)._asdict() | own for each in hashes])
    return {"end_users": owners}


async def remove_owners(table: Table, tenant: str, item: Item, kind: "OwnedKind", *ids: str) -> None:
    """Delete the entries of a deleted object, whose record was `item`."""
    # From the record, not from the caller: several end users may have used the object.
    hashes = item.get("end_users", "").split()
    await map_concurrently(table.delete, [user_object(tenant, each, kind, ids) for each in hashes])
