"""Copy data of one moment into the table, the keys and the bucket of a stack: `python -m infra.scripts.restore`.

The tables come from DynamoDB's point-in-time recovery, which always makes a new table. The objects are the versions
that the bucket had at the moment, also of those that were deleted since. Vector indexes are not copied: files are added
to their vector stores again. Credentials and the region are those of boto3. A repeated run copies the same.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

WRITE_BATCH = 25
PARALLEL = 16
INDEXES = ("packed/", "vectors/")
"""Prefixes of objects that are made again when files are ingested."""


class Refused(Exception):
    """Nothing more is copied. The message has the reason and the solution."""


def main(arguments: Sequence[str]) -> int:
    """Copy what the arguments name, and return the exit code."""
    options = make_parser().parse_args(arguments)
    try:
        for source, target in options.table:
            with named(source, target):
                print(f"{copy_table(connect('dynamodb'), source, target)} items of {source} are in {target}")
        if options.bucket:
            source, target = options.bucket
            with named(source, target):
                count = copy_objects(connect("s3"), source, target, options.at)
            print(f"{count} objects of {source} at {options.at:%Y-%m-%dT%H:%M:%SZ} are in {target}")
    except Refused as refused:
        print(f"stint: {refused}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def named(source: str, target: str) -> Iterator[None]:
    """Add the names of what is copied to errors of AWS."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise Refused(
            f"{source} is not copied completely to {target}: {error}. Fix the cause, and run the command again."
        ) from error


def connect(service: str) -> Any:
    config = Config(max_pool_connections=PARALLEL, retries={"mode": "standard", "total_max_attempts": 10})
    make: Any = boto3.client
    return make(service, config=config)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m infra.scripts.restore")
    for name, action, text in (
        ("--table", "append", "a restored table, and one of the new stack; repeatable"),
        ("--bucket", "store", "the bucket with the versions, and that of the new stack"),
    ):
        parser.add_argument(name, action=action, nargs=2, metavar=("FROM", "TO"), default=[], help=text)
    parser.add_argument("--at", type=moment, default=datetime.now(UTC), help="the moment, such as 2026-11-22T10:00:00Z")
    return parser


def moment(text: str) -> datetime:
    """Return a time with its zone. Raises ArgumentTypeError."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        parsed = None
    if parsed is None or parsed.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time with a zone, such as 2026-11-22T10:00:00Z")
    return parsed.astimezone(UTC)


def copy_table(dynamodb: Any, source: str, target: str) -> int:
    """Write all items of a table to another one, and return their number."""
    count = 0
    for page in dynamodb.get_paginator("scan").paginate(TableName=source, ConsistentRead=True):
        items = page["Items"]
        for start in range(0, len(items), WRITE_BATCH):
            write(dynamodb, target, items[start : start + WRITE_BATCH])
        count += len(items)
    return count


def write(dynamodb: Any, table: str, items: list[dict[str, Any]]) -> None:
    """Write items, and those again that DynamoDB did not take."""
    left: dict[str, Any] = {table: [{"PutRequest": {"Item": item}} for item in items]}
    for attempt in range(10):
        left = dynamodb.batch_write_item(RequestItems=left).get("UnprocessedItems", {})
        if not left:
            return
        time.sleep(min(0.1 * 2**attempt, 5))
    raise Refused(f"{table} refused {len(left[table])} items ten times. Run the command again later.")


def copy_objects(s3: Any, source: str, target: str, at: datetime) -> int:
    """Copy the versions of a bucket's objects at a moment to another bucket, and return their number."""
    with ThreadPoolExecutor(PARALLEL) as threads:
        copies = [threads.submit(copy_version, s3, source, target, each) for each in versions_at(s3, source, at)]
        for each in copies:
            each.result()
    return len(copies)


def copy_version(s3: Any, source: str, target: str, version: dict[str, Any]) -> None:
    """Copy one version, in parts if it is large."""
    s3.copy({"Bucket": source, "Key": version["Key"], "VersionId": version["VersionId"]}, target, version["Key"])


def versions_at(s3: Any, bucket: str, at: datetime) -> Iterator[dict[str, Any]]:
    """Yield the current version of each object at a moment; none of one that did not exist then.

    Lists are ordered by key. Of a key's versions and delete markers at the moment, the newest decides.
    """
    for key, entries in groupby(list_entries(s3, bucket), key=lambda entry: str(entry["Key"])):
        earlier = [entry for entry in entries if entry["LastModified"] <= at]
        newest = max(earlier, key=lambda entry: (entry["LastModified"], entry["IsLatest"]), default=None)
        if newest and "ETag" in newest and not key.startswith(INDEXES):  # a delete marker has no ETag
            yield newest


def list_entries(s3: Any, bucket: str) -> Iterator[dict[str, Any]]:
    """Yield all versions and delete markers by key, also those of a key that a page boundary divides."""
    for page in s3.get_paginator("list_object_versions").paginate(Bucket=bucket):
        entries = [*page.get("Versions", []), *page.get("DeleteMarkers", [])]
        yield from sorted(entries, key=lambda entry: str(entry["Key"]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
