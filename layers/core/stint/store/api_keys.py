"""API keys in a table of their own: a record for each key, and an entry in the list of its tenant.

The record has the hash of the secret, never the secret. Its partition is the key's id, so that one read finds it.
DynamoDB removes both records some time after the key's end, which readers never rely on. Only an operator's command,
whose own credentials may scan the table, reads the keys of all tenants (`AllApiKeys`).
"""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from stint.dataclasses import dataclass
from stint.domain.api_keys import ApiKeyObject, StoredApiKey, is_key_id
from stint.domain.errors import Conflict, NotFound
from stint.domain.paging import Page
from stint.store.failures import ConditionFailed
from stint.store.items import Item, decode, encode
from stint.store.keys import Key, checked_tenant
from stint.store.table import Table, call_counted, take

if TYPE_CHECKING:
    from stint.aws.dynamodb import DynamoDBClient

KEY_PREFIX = "api_key:"
"""The start of the partition of a key's record. No tenant has these characters."""

KEPT_SECONDS = 30 * 86_400
"""Time that the list has a key after its end."""

MUTABLE = ("rotated_at", "previous_expires_at", "revoked_at")
"""Fields that are attributes of their own, because they change after the creation."""


class ApiKeyStore:
    """The keys of all tenants. A `tenant` of None means any tenant: for the operator of a stack."""

    def __init__(self, table: Table) -> None:
        self._table = table

    async def create(self, key: StoredApiKey) -> None:
        """Store a new key: the list entry first, so that no valid key is missing in the list."""
        await self._table.put(list_entry(key.resource))
        await self._table.put_new(to_item(key))

    async def find(self, key_id: str) -> StoredApiKey | None:
        """Read a key by its id, in one call."""
        item = await self._table.get(key_record(key_id)) if is_key_id(key_id) else None
        return None if item is None else to_key(item)

    async def get(self, tenant: str | None, key_id: str) -> StoredApiKey:
        """Read a key of a tenant. Raises NotFound."""
        found = await self.find(key_id)
        if found is None or tenant not in (None, found.resource.tenant):
            raise NotFound("API key", key_id)
        return found

    async def list_ids(self, tenant: str) -> list[str]:
        """Return the ids of the keys of a tenant, in the order of their creation.

        It has also those that ended in the last 30 days.
        """
        return [item["sk"] async for item in self._table.query(list_entries(tenant), attributes="sk")]

    async def get_many(self, ids: list[str]) -> list[StoredApiKey]:
        """Read keys, in any order. Missing ones are omitted."""
        found = await self._table.get_many([key_record(key_id) for key_id in ids])
        return [to_key(item) for item in found.values()]

    async def rotate(self, key: StoredApiKey, secret_hash: bytes, now: int, overlap: int) -> StoredApiKey:
        """Replace the secret. Raises Conflict if another request has changed the key since it was read."""
        changes = {
            "secret_hash": secret_hash,
            "rotated_at": now,
            "previous_hash": key.secret_hash if overlap else None,
            "previous_expires_at": now + overlap if overlap else None,
        }
        condition = "secret_hash = :read AND attribute_not_exists(revoked_at)"
        try:
            changed = await self._table.update(
                key_record(key.resource.id), changes, condition, {":read": key.secret_hash}
            )
        except ConditionFailed as refused:
            if refused.item is None or refused.item["secret_hash"] != secret_hash:
                raise changed_meanwhile(key.resource.id) from refused
            changed = refused.item  # a retry, whose first attempt took effect
        return to_key(changed)

    async def revoke(self, key: StoredApiKey, now: int) -> StoredApiKey:
        """Make a key invalid. A key that is revoked already keeps its time."""
        removal = {"delete_at": now + KEPT_SECONDS}
        revoked_at = key.resource.revoked_at or now
        condition = "attribute_exists(pk) AND (attribute_not_exists(revoked_at) OR revoked_at = :now)"
        try:
            changed = await self._table.update(
                key_record(key.resource.id), {"revoked_at": revoked_at, **removal}, condition, {":now": revoked_at}
            )
        except ConditionFailed as refused:
            if refused.item is None:
                raise NotFound("API key", key.resource.id) from refused
            changed = refused.item  # another request was first
        await self._table.put(list_entry(key.resource) | removal)
        return to_key(changed)


def changed_meanwhile(key_id: str) -> Conflict:
    return Conflict(f"API key {key_id} was rotated or revoked by another request. Read it, and try again.")


def key_record(key_id: str) -> Key:
    """Return the key of an API key's record. Only ids in the form of one are part of it."""
    if not is_key_id(key_id):
        raise NotFound("API key", key_id)
    return Key(f"{KEY_PREFIX}{key_id}", "meta")


def list_entries(tenant: str) -> str:
    return f"{checked_tenant(tenant)}#api_key"


def list_entry(resource: ApiKeyObject) -> Item:
    return Key(list_entries(resource.tenant), resource.id)._asdict() | removal_of(resource)


def to_item(key: StoredApiKey) -> Item:
    resource = key.resource
    document = resource.model_dump_json(exclude=set(MUTABLE), exclude_none=True)
    return {
        **key_record(resource.id)._asdict(),
        "doc": document,
        "secret_hash": key.secret_hash,
        **removal_of(resource),
    }


def removal_of(resource: ApiKeyObject) -> Item:
    """Return the attribute of the time to live, if the key expires."""
    return {} if resource.expires_at is None else {"delete_at": resource.expires_at + KEPT_SECONDS}


def to_key(item: Item) -> StoredApiKey:
    resource = ApiKeyObject.model_validate_json(item["doc"])
    changes = {name: item[name] for name in MUTABLE if name in item}
    return StoredApiKey(resource.model_copy(update=changes), item["secret_hash"], item.get("previous_hash"))


PAGE = 500
"""Maximum records that a call reads: a key and its entry in the list of its tenant are two."""


@dataclass(frozen=True, slots=True)
class AllApiKeys:
    """The keys of all tenants, in the order in which the table has them, which is none that has a meaning."""

    client: "DynamoDBClient"
    table: str

    async def read_page(self, after: str | None, limit: int) -> Page[ApiKeyObject]:
        """Return up to `limit` keys, those that follow the key `after`. Raises NotFound if that is not a key's id."""
        found = await take(self.read(after), limit + 1)
        return Page(found[:limit], len(found) > limit)

    async def read(self, after: str | None) -> AsyncGenerator[ApiKeyObject, None]:
        """Yield the keys that follow the key `after`."""
        request: dict[str, Any] = {
            "TableName": self.table,
            "ConsistentRead": True,
            "FilterExpression": "begins_with(pk, :prefix)",
            "ExpressionAttributeValues": encode({":prefix": KEY_PREFIX}),
            "Limit": PAGE,
        }
        if after is not None:
            request["ExclusiveStartKey"] = encode(key_record(after)._asdict())
        while True:
            answer = await call_counted(self.client, "Scan", request)
            for item in answer["Items"]:
                yield to_key(decode(item)).resource
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
