"""Calls of DynamoDB, whose capacity units are counted for the current run."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stint.metering import count_capacity
from stint.store.failures import table_errors

if TYPE_CHECKING:
    from stint.aws.dynamodb import DynamoDBClient


async def call_counted(client: "DynamoDBClient", operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Call an operation, and count the units that it consumed. Raises as `table_errors`."""
    with table_errors():
        answer = await client.call(operation, {**request, "ReturnConsumedCapacity": "TOTAL"})
    if consumed := answer.get("ConsumedCapacity"):
        count_capacity(operation, consumed)
    return answer
