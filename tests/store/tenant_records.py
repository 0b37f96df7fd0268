"""Read what a tenant has stored in a table and a bucket that many tests share, without reading those of the others."""

import json
import re
from collections.abc import Iterator
from typing import Any

PARTITION_KEY = re.compile(rb'"pk": ?\{"S": ?("(?:[^"\\]|\\.)*")')
SEEN: dict[str, set[str]] = {}
"""The partitions that clients of this process have named, by tenant. A scan would read what all tests have stored."""


def note_partitions(operation: str, body: bytes) -> None:
    """Note each partition that a request names, as an observer of the DynamoDB proxy."""
    for quoted in PARTITION_KEY.findall(body):
        partition = json.loads(quoted)
        SEEN.setdefault(partition.partition("#")[0], set()).add(partition)


def read_records(dynamodb: Any, table: str, tenant: str) -> list[dict[str, Any]]:
    """Read all records of a tenant whose partitions were noted."""
    records: list[dict[str, Any]] = []
    for partition in sorted(SEEN.get(tenant, ())):
        pages = dynamodb.get_paginator("query").paginate(
            TableName=table,
            KeyConditionExpression="pk = :partition",
            ExpressionAttributeValues={":partition": {"S": partition}},
            ConsistentRead=True,
        )
        records.extend(item for page in pages for item in page["Items"])
    return records


def list_blobs(s3: Any, bucket: str, tenant: str) -> list[str]:
    """List the keys of a tenant's blobs."""
    return [key for top in _list(s3, bucket, "") for key in _list(s3, bucket, f"{top}{tenant}/", "")]


def _list(s3: Any, bucket: str, prefix: str, delimiter: str = "/") -> Iterator[str]:
    """Yield the keys with a prefix; with a delimiter the folders."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, Delimiter=delimiter)
    for page in pages:
        yield from (folder["Prefix"] for folder in page.get("CommonPrefixes", []))
        yield from (each["Key"] for each in page.get("Contents", []))
