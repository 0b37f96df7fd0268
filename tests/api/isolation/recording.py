"""Records the calls of data in this process, with the tenant and the function for which the calling code ran."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from botocore.client import BaseClient
from tests.api.isolation.iam import Request
from tests.api.isolation.warm_process import FUNCTION, WorkerQueue

from stint.aws.dynamodb import DynamoDBClient
from stint.caller import require_tenant
from stint.domain.tasks import AnyTask
from stint.settings import Settings

TABLE_ARN = "arn:aws:dynamodb:us-east-1:123456789012:table/data"
BUCKET_ARN = "arn:aws:s3:::bucket"
VECTOR_BUCKET_ARN = "arn:aws:s3vectors:us-east-1:123456789012:bucket/vectors"
QUEUE_ARN = "arn:aws:sqs:us-east-1:123456789012:work"
PARTITION = re.compile(r"pk = (:\w+)")


@dataclass(frozen=True)
class RecordedCall:
    """A call of data or of the queue, with the tenant and the function whose credentials it would have."""

    tenant: str
    request: Request
    function: str = ""
    """Its logical id. Empty for a call of the test itself."""


@contextmanager
def recording(settings: Settings) -> Iterator[list[RecordedCall]]:
    """Yield a list to which the calls of the table, of the buckets and of the queue are appended."""
    calls: list[RecordedCall] = []
    send, send_botocore = DynamoDBClient.call, BaseClient._make_api_call  # type: ignore[attr-defined]  # not in the stubs
    send_task = WorkerQueue.send

    def note(*requests: Request) -> None:
        calls.extend(RecordedCall(current_tenant(), each, FUNCTION.get()) for each in requests)

    async def call(client: DynamoDBClient, operation: str, request: Mapping[str, Any], **options: Any) -> Any:
        if settings.table in str(request):
            note(*table_requests(operation, request))
        return await send(client, operation, request, **options)

    def make_api_call(client: Any, operation: str, parameters: Mapping[str, Any]) -> Any:
        if parameters.get("Bucket") == settings.bucket:
            note(*S3_REQUESTS[operation](parameters))
        if "vectorBucketName" in parameters:
            note(*vector_requests(operation, parameters))
        return send_botocore(client, operation, parameters)

    async def send_message(queue: WorkerQueue, task: AnyTask) -> None:
        note(Request("sqs:SendMessage", QUEUE_ARN))
        await send_task(queue, task)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DynamoDBClient, "call", call)
        patch.setattr(BaseClient, "_make_api_call", make_api_call)
        patch.setattr(WorkerQueue, "send", send_message)
        yield calls


def current_tenant() -> str:
    """Return the tenant of the calling code; empty if it has none, so that no policy allows its call."""
    try:
        return require_tenant()
    except RuntimeError:
        return ""


def table_requests(operation: str, request: Mapping[str, Any]) -> list[Request]:
    """Return the requests that IAM authorizes for a call of the table."""
    if operation != "TransactWriteItems":
        return [table_request(f"dynamodb:{operation}", leading_keys(operation, request))]
    return [
        table_request(f"dynamodb:{kind}Item", [partition_of(write.get("Key") or write["Item"])])
        for item in request["TransactItems"]
        for kind, write in item.items()
    ]


def table_request(action: str, keys: list[str]) -> Request:
    return Request(action, TABLE_ARN, {"dynamodb:LeadingKeys": keys} if keys else {})


def leading_keys(operation: str, request: Mapping[str, Any]) -> list[str]:
    """Return the partition keys of a call."""
    match operation:
        case "GetItem" | "UpdateItem" | "DeleteItem":
            return [partition_of(request["Key"])]
        case "PutItem":
            return [partition_of(request["Item"])]
        case "BatchGetItem":
            return [partition_of(key) for table in request["RequestItems"].values() for key in table["Keys"]]
        case "BatchWriteItem":
            writes = [write for table in request["RequestItems"].values() for each in table for write in each.values()]
            return [partition_of(write.get("Key") or write["Item"]) for write in writes]
        case "Query":
            [name] = PARTITION.findall(request["KeyConditionExpression"])
            return [request["ExpressionAttributeValues"][name]["S"]]
    return []


def partition_of(key: Mapping[str, Any]) -> str:
    return str(key["pk"]["S"])


def object_request(action: str) -> Callable[[Mapping[str, Any]], list[Request]]:
    return lambda parameters: [Request(action, f"{BUCKET_ARN}/{parameters['Key']}")]


def deletions(parameters: Mapping[str, Any]) -> list[Request]:
    return [Request("s3:DeleteObject", f"{BUCKET_ARN}/{each['Key']}") for each in parameters["Delete"]["Objects"]]


def listing(parameters: Mapping[str, Any]) -> list[Request]:
    context = {"s3:prefix": [parameters["Prefix"]]} if "Prefix" in parameters else {}
    return [Request("s3:ListBucket", BUCKET_ARN, context)]


def vector_requests(operation: str, parameters: Mapping[str, Any]) -> list[Request]:
    """Return the requests that IAM authorizes for a call of an index: filters and metadata need GetVectors, too."""
    needs_vectors = operation == "QueryVectors" and ("filter" in parameters or parameters.get("returnMetadata"))
    actions = [operation, "GetVectors"] if needs_vectors else [operation]
    return [Request(f"s3vectors:{each}", f"{VECTOR_BUCKET_ARN}/index/{parameters['indexName']}") for each in actions]


S3_REQUESTS: Mapping[str, Callable[[Mapping[str, Any]], list[Request]]] = {
    "GetObject": object_request("s3:GetObject"),
    "HeadObject": object_request("s3:GetObject"),
    "PutObject": object_request("s3:PutObject"),
    "DeleteObject": object_request("s3:DeleteObject"),
    "DeleteObjects": deletions,
    "ListObjectsV2": listing,
}
"""The requests that IAM authorizes for each operation of S3."""
