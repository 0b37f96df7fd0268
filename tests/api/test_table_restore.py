"""The restore drill of docs/production.md: a stack is restored to a moment, as data of a second stack."""

import copy
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import httpx
import pytest
from infra.local.engine import DATA_TEMPLATE, ROOT, Engine, apply_stack
from infra.scripts.restore import copy_table, main, versions_at
from tests.api.api_client import open_session, turn
from tests.api.app_fixture import AppFixture, Served

from stint.domain.ids import new_id

LONG = "Llamas hum. " * 30_000
"""Over the 300 KB of a record, so the turn is in the bucket."""

FILE = Random(3).randbytes(400_000).hex().encode()
QUERY = "Where do llamas live?"


@dataclass(frozen=True)
class Stack:
    """A stack of the local engine with data of its own, and a client of its API."""

    app: AppFixture
    http: httpx.Client
    outputs: dict[str, str]


MakeStack = Callable[[], Any]


@pytest.fixture
def make_stack(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> MakeStack:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)

    @contextmanager
    def make() -> Iterator[Stack]:
        own = copy.copy(engine)
        own.outputs = apply_stack(engine.running.client("cloudformation"), f"s{new_id()}", DATA_TEMPLATE.read_text())
        app = AppFixture(own)
        app.tenant = "default"
        with Served(app.app()) as served, httpx.Client(base_url=served.url, trust_env=False, timeout=120) as http:
            yield Stack(app, http, own.outputs)
        app.close()

    return make


def fill(stack: Stack) -> list[str]:
    """Make an object of each kind, and return the paths at which they are read."""
    session = open_session(stack.http)
    turn(stack.http, session, "Hello")
    turn(stack.http, session, LONG)
    response = post(stack, "/v1/responses", model="scripted/demo", input="Hello")["id"]
    conversation = post(stack, "/v1/conversations", items=[{"role": "user", "content": "Hello"}])["id"]
    large = upload(stack, "large.txt", FILE)
    file = upload(stack, "llamas.txt", b"Llamas live in the Andes of Peru.")
    store = post(stack, "/v1/vector_stores", name="Animals")["id"]
    add(stack, store, file)
    return [
        session.partition("/session")[0],
        session,
        f"/v1/responses/{response}",
        f"/v1/conversations/{conversation}/items",
        "/v1/files",
        f"/v1/files/{large}/content",
        f"/v1/files/{file}/content",
        f"/v1/vector_stores/{store}",
        f"/v1/vector_stores/{store}/files",
    ]


def post(stack: Stack, path: str, **body: Any) -> dict[str, Any]:
    answer = stack.http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def upload(stack: Stack, name: str, content: bytes) -> str:
    answer = stack.http.post("/v1/files", files={"file": (name, content)}, data={"purpose": "assistants"})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["id"])


def add(stack: Stack, store: str, file: str) -> None:
    """Add a file to a vector store, and ingest it like the worker."""
    post(stack, f"/v1/vector_stores/{store}/files", file_id=file)
    stack.app.ingest()


def read(stack: Stack, paths: list[str]) -> dict[str, tuple[int, bytes]]:
    answers = {path: stack.http.get(path) for path in paths}
    return {path: (answer.status_code, answer.content) for path, answer in answers.items()}


def search(stack: Stack, store: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = post(stack, f"{store}/search", query=QUERY)["data"]
    return found


def last_write(stack: Stack) -> datetime:
    """Return the time of the bucket's last change, as the engine's clock has it."""
    pages = stack.app.s3.get_paginator("list_object_versions").paginate(Bucket=stack.outputs["BucketName"])
    return max(each["LastModified"] for page in pages for each in page.get("Versions", []))


def restore_table(stack: Stack, name: str) -> str:
    """Restore a table to this moment, as a new table."""
    restored = f"{stack.outputs[name]}-restored"
    stack.app.dynamodb.restore_table_to_point_in_time(
        SourceTableName=stack.outputs[name], TargetTableName=restored, UseLatestRestorableTime=True
    )
    return restored


def test_a_stack_with_restored_data_reads_the_same(make_stack: MakeStack) -> None:
    with make_stack() as stack, make_stack() as new:
        paths = fill(stack)
        before, found = read(stack, paths), search(stack, paths[-2])
        moment = last_write(stack)
        tables = [(restore_table(stack, name), new.outputs[name]) for name in ("TableName", "KeysTableName")]
        for path in (paths[0], paths[2], *(path.removesuffix("/content") for path in paths[5:7]), paths[-2]):
            assert stack.http.delete(path).status_code == 200, path
        buckets = [stack.outputs["BucketName"], new.outputs["BucketName"]]

        arguments = [word for pair in tables for word in ("--table", *pair)]
        assert main([*arguments, "--bucket", *buckets, "--at", moment.isoformat()]) == 0

        assert {status for status, _ in before.values()} == {200}
        assert read(stack, paths) != before
        assert read(new, paths) == before
        command = [sys.executable, str(ROOT / "docs" / "examples" / "reingest.py"), str(new.http.base_url)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert (done.stdout, done.stderr) == ("1 files are being ingested again\n", "")
        new.app.ingest()
        assert search(new, paths[-2]) == found


def test_of_each_object_the_version_of_the_moment_is_copied(engine: Engine, make_stack: MakeStack) -> None:
    with make_stack() as stack:
        s3, bucket = stack.app.s3, stack.outputs["BucketName"]
        for body in (b"1", b"2"):
            s3.put_object(Bucket=bucket, Key="kept/changed", Body=body)
        s3.put_object(Bucket=bucket, Key="kept/deleted", Body=b"d")
        s3.put_object(Bucket=bucket, Key="packed/index", Body=b"i")
        moment = last_write(stack)
        s3.put_object(Bucket=bucket, Key="kept/changed", Body=b"3")
        s3.delete_object(Bucket=bucket, Key="kept/deleted")
        s3.put_object(Bucket=bucket, Key="kept/new", Body=b"n")

        def bodies(at: datetime) -> dict[str, bytes]:
            found = [(each["Key"], each["VersionId"]) for each in versions_at(s3, bucket, at)]
            read = {key: s3.get_object(Bucket=bucket, Key=key, VersionId=version) for key, version in found}
            return {key: answer["Body"].read() for key, answer in read.items()}

        assert bodies(moment) == {"kept/changed": b"2", "kept/deleted": b"d"}
        assert bodies(datetime.now(UTC) + timedelta(days=1)) == {"kept/changed": b"3", "kept/new": b"n"}
        assert bodies(moment - timedelta(days=1)) == {}


class UnprocessedItemsClient:
    """A client of DynamoDB that takes one item of each batch at first."""

    def __init__(self, dynamodb: Any) -> None:
        self._dynamodb = dynamodb
        self.refused = False

    def get_paginator(self, name: str) -> Any:
        return self._dynamodb.get_paginator(name)

    def batch_write_item(self, *, RequestItems: dict[str, list[Any]]) -> dict[str, Any]:  # noqa: N803 - DynamoDB's name
        ((table, items),) = RequestItems.items()
        taken = items if self.refused else items[:1]
        self.refused = True
        self._dynamodb.batch_write_item(RequestItems={table: taken})
        left = items[len(taken) :]
        return {"UnprocessedItems": {table: left} if left else {}}


def test_items_that_dynamodb_did_not_take_are_written_again(make_stack: MakeStack) -> None:
    with make_stack() as stack:
        dynamodb, table, other = stack.app.dynamodb, stack.outputs["TableName"], stack.outputs["KeysTableName"]
        for number in range(30):
            dynamodb.put_item(TableName=table, Item={"pk": {"S": "p"}, "sk": {"S": f"{number:02}"}})

        count = copy_table(UnprocessedItemsClient(dynamodb), table, other)

        assert (count, dynamodb.scan(TableName=other)["Count"]) == (30, 30)


@pytest.mark.parametrize("at", ["yesterday", "2026-11-22T10:00:00"])
def test_a_moment_without_a_zone_is_refused(at: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--bucket", "a", "b", "--at", at])

    assert f"{at!r} is not a time with a zone" in capsys.readouterr().err


def test_a_missing_table_is_named(make_stack: MakeStack, capsys: pytest.CaptureFixture[str]) -> None:
    with make_stack() as stack:
        assert main(["--table", "nothing-here", stack.outputs["TableName"]]) == 1

    assert f"nothing-here is not copied completely to {stack.outputs['TableName']}" in capsys.readouterr().err
