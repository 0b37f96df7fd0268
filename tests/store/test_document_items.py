import secrets
import threading
import zlib
from typing import Any

import pytest
from tests.store.conftest import Cloud
from tests.store.record_samples import PROSE, agent, record

from stint.domain.errors import NotFound, StintError
from stint.domain.ids import new_id
from stint.domain.schema import Schema
from stint.domain.tools import ToolCall
from stint.store import items, keys
from stint.store.blobs import Blobs
from stint.store.documents import IN_THREAD, MAX_ITEM, Documents, fitting, to_json
from stint.store.failures import ConditionFailed

KEY = {"pk": "p", "sk": "s"}


class Note(Schema):
    text: str
    extra: dict[str, Any] | None = None
    count: int | None = 1


@pytest.fixture
def documents(cloud: Cloud) -> Documents:
    return Documents(cloud.table, Blobs(cloud.objects))


def test_json_has_no_nulls_that_mean_nothing() -> None:
    assert to_json(Note(text="x", extra=None)) == b'{"text":"x","count":1}'


@pytest.mark.parametrize("note", [Note(text="x", extra={"key": None}), Note(text="x", count=None)])
def test_json_keeps_nulls_that_mean_something(note: Note) -> None:
    assert Note.model_validate_json(to_json(note)) == note


def test_arguments_of_a_tool_call_keep_their_nulls() -> None:
    call = ToolCall(call_id="c", tool_name="t", arguments={"a": None, "b": [None]})

    assert ToolCall.model_validate_json(to_json(call)) == call


async def test_a_small_document_stays_readable(documents: Documents) -> None:
    item = await documents.pack(KEY, Note(text="short"), "prefix/")

    assert item == KEY | {"doc": '{"text":"short","count":1}'}


async def test_a_document_is_compressed_when_that_saves_a_unit(documents: Documents) -> None:
    note = Note(text=PROSE * 10)

    item = await documents.pack(KEY, note, "prefix/")

    assert isinstance(item["doc"], bytes)
    assert items.write_units(item) < items.write_units(KEY | {"doc": to_json(note).decode()})
    assert await documents.read([item]) == [to_json(note)]


async def test_a_document_that_compression_saves_no_unit_stays_readable(documents: Documents) -> None:
    note = Note(text=secrets.token_urlsafe(1_000))

    assert (await documents.pack(KEY, note, "prefix/"))["doc"] == to_json(note).decode()


async def test_a_large_document_lies_in_the_bucket(documents: Documents, cloud: Cloud) -> None:
    note = Note(text=secrets.token_urlsafe(1_500_000))

    item = await documents.pack(KEY, note, "kept/tenant/")

    assert items.write_units(item) == 1
    assert item["blob"].startswith("kept/tenant/")
    assert item["size"] == len(to_json(note))
    assert await documents.read([item, KEY | {"doc": "x"}, item]) == [to_json(note), b"x", to_json(note)]


async def test_a_large_document_that_compresses_well_needs_no_bucket(documents: Documents, cloud: Cloud) -> None:
    item = await documents.pack(KEY, Note(text=PROSE * 5_000), "kept/tenant/")

    assert "doc" in item
    assert cloud.calls["PutObject"] == 0


async def test_a_blob_is_never_overwritten(documents: Documents) -> None:
    note = Note(text=secrets.token_urlsafe(600_000))

    first, second = [(await documents.pack(KEY, note, "kept/tenant/"))["blob"] for _ in range(2)]

    assert first != second


@pytest.mark.parametrize("lost", [1, 0])
async def test_a_damaged_blob_is_refused(documents: Documents, cloud: Cloud, lost: int) -> None:
    item = await documents.pack(KEY, Note(text=secrets.token_urlsafe(600_000)), "kept/tenant/")
    cloud.s3.put_object(Bucket=cloud.bucket, Key=item["blob"], Body=b"x" * (item["length"] - lost))

    with pytest.raises(StintError, match="damaged"):
        await documents.read([item])


async def test_a_blob_that_is_gone_is_not_found(documents: Documents, cloud: Cloud) -> None:
    item = await documents.pack(KEY, Note(text=secrets.token_urlsafe(600_000)), "kept/tenant/")
    cloud.s3.delete_object(Bucket=cloud.bucket, Key=item["blob"])

    with pytest.raises(NotFound):
        await documents.read([item])


async def test_a_refused_write_takes_its_blob_back(documents: Documents, cloud: Cloud, tenant: str) -> None:
    key = keys.agent_config(tenant, new_id())._asdict()
    large = record(new_id(), secrets.token_urlsafe(600_000))
    await documents.put_new(key, agent(), f"kept/{tenant}/")

    with pytest.raises(ConditionFailed):
        await documents.put_new(key, large, f"kept/{tenant}/")

    assert cloud.blobs(tenant) == []


@pytest.mark.parametrize(
    ("sizes", "count"),
    [([], 0), ([5_000_000], 1), ([5_000_000, 1], 1), ([2_000_000, 2_000_000, 1], 2), ([1, 2, 3], 3)],
)
def test_an_answer_holds_what_fits_and_at_least_one(sizes: list[int], count: int) -> None:
    assert fitting(sizes) == count


def test_a_large_document_keeps_its_nulls_as_reading_it_back_would_cost_too_much() -> None:
    assert b'"extra":null' in to_json(Note(text="x" * MAX_ITEM, extra=None))


async def test_only_a_large_document_is_compressed_in_a_thread_and_once(
    documents: Documents, monkeypatch: pytest.MonkeyPatch
) -> None:
    compress, threads = zlib.compress, list[threading.Thread]()

    def noting(body: bytes) -> bytes:
        threads.append(threading.current_thread())
        return compress(body)

    monkeypatch.setattr(zlib, "compress", noting)
    await documents.pack(KEY, Note(text="x" * (IN_THREAD // 2)), "prefix/")
    await documents.pack(KEY, Note(text=secrets.token_hex(MAX_ITEM)), f"{new_id()}/")

    assert [thread is threading.main_thread() for thread in threads] == [True, False]
