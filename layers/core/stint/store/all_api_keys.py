"""The API keys of all tenants, for an operator's command, whose own credentials may scan their table."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from stint.dataclasses import dataclass
from stint.domain.api_keys import ApiKeyObject
from stint.domain.paging import Page
from stint.store.api_keys import KEY_PREFIX, key_record, to_key
from stint.store.capacity import call_counted
from stint.store.items import decode, encode
from stint.store.table import take

if TYPE_CHECKING:
    from stint.aws.dynamodb import DynamoDBClient

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
