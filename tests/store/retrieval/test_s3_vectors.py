"""The index in S3 Vectors: its calls, its limits, and its errors."""

import random

import pytest
from tests.servers.converse_stream import error
from tests.servers.s3_vectors import S3VectorsServer
from tests.servers.scripted_http import Reply
from tests.store.conftest import Cloud
from tests.store.retrieval.entries import about, both, entry, keys, near

from stint.domain.errors import StintError, StoreUnavailable
from stint.domain.filters import Attributes, ComparisonFilter, CompoundFilter
from stint.retrieval.s3_vectors.index import TOP_K, S3VectorsIndex
from stint.retrieval.words import query_text
from stint.store.objects import BucketObjects

LONG = "long " * 20_000


def kept(cloud: Cloud, name: str) -> list[str]:
    listed = cloud.s3.list_objects_v2(Bucket=cloud.bucket, Prefix=f"vectors/{name}/").get("Contents", [])
    return [each["Key"] for each in listed]


async def test_each_operation_makes_as_few_calls_as_the_limits_allow(
    s3_vectors: S3VectorsIndex, vectors: S3VectorsServer, cloud: Cloud, name: str
) -> None:
    await s3_vectors.create(name, 2)
    await s3_vectors.upsert(name, [entry(f"{at:04}", (1, at), f"word {at}") for at in range(1_000)])
    assert vectors.calls == {"CreateIndex": 1, "PutVectors": 2}

    vectors.calls.clear()
    await s3_vectors.query(name, near((1, 0)))
    assert vectors.calls == {"QueryVectors": 1}
    await s3_vectors.query(name, both((1, 0), "5"))
    assert vectors.calls == {"QueryVectors": 3}

    vectors.calls.clear()
    cloud.forget()
    await s3_vectors.delete(name, [f"{at:04}" for at in range(600)])
    assert vectors.calls == {"DeleteVectors": 2}
    assert cloud.calls == {"ListObjectsV2": 1}


async def test_a_call_has_at_most_20_mib(s3_vectors: S3VectorsIndex, vectors: S3VectorsServer, name: str) -> None:
    await s3_vectors.create(name, 4_096)
    vector = [random.Random(at).uniform(-1, 1) for at in range(4_096)]

    await s3_vectors.upsert(name, [entry(f"{at:03}", vector, "\U0001f600" * 8_000) for at in range(200)])

    assert len(vectors.keys(name)) == 200
    assert max(len(request.body) for request in vectors.requests) < 20 * 1024 * 1024


async def test_what_exceeds_the_metadata_is_in_the_bucket_until_it_is_deleted(
    s3_vectors: S3VectorsIndex, cloud: Cloud, name: str
) -> None:
    await s3_vectors.create(name, 2)
    chunks = [entry(key, (1, at), LONG + key) for at, key in enumerate(("a", "b", "a/b", "a b"))]
    await s3_vectors.upsert(name, chunks)
    assert len(kept(cloud, name)) == 4

    await s3_vectors.delete(name, ["a"])
    hits = await s3_vectors.query(name, near((1, 0)))
    assert [hit.text for hit in hits] == [LONG + "b", LONG + "a/b", LONG + "a b"]
    await s3_vectors.upsert(name, [entry("b", (1, 0), "short")])
    await s3_vectors.delete(name, ["a/b", "b"])
    assert len(kept(cloud, name)) == 1

    await s3_vectors.drop(name)
    assert kept(cloud, name) == []


async def test_a_chunk_whose_text_was_deleted_meanwhile_is_not_found(
    s3_vectors: S3VectorsIndex, cloud: Cloud, name: str
) -> None:
    await s3_vectors.create(name, 2)
    await s3_vectors.upsert(name, [entry("a", (1, 0), LONG), entry("b", (1, 1), "short")])

    for key in kept(cloud, name):
        cloud.s3.delete_object(Bucket=cloud.bucket, Key=key)

    assert keys(await s3_vectors.query(name, near((1, 0)))) == ["b"]


async def test_texts_with_lone_surrogates_are_returned_as_they_are(s3_vectors: S3VectorsIndex, name: str) -> None:
    await s3_vectors.create(name, 2)
    strange = entry("a", (1, 0), "lone \ud800 word", {"k": "\udfff"}, {"m": "\ud801"})
    await s3_vectors.upsert(name, [strange])

    (hit,) = await s3_vectors.query(name, about("word \ud800"))

    assert (hit.text, hit.attributes, hit.metadata) == (strange.text, strange.attributes, strange.metadata)


async def test_all_pages_of_a_query_are_read(s3_vectors: S3VectorsIndex, vectors: S3VectorsServer, name: str) -> None:
    await s3_vectors.create(name, 2)
    await s3_vectors.upsert(name, [entry(f"{at:03}", (1, at)) for at in range(250)])

    assert len(await s3_vectors.query(name, near((1, 0), 250))) == 250
    assert vectors.calls["QueryVectors"] == 3


async def test_a_filter_of_100_comparisons_is_within_the_limit_of_constraints(
    s3_vectors: S3VectorsIndex, name: str
) -> None:
    await s3_vectors.create(name, 2)
    await s3_vectors.upsert(name, [entry(f"{at:03}", (1, at), attributes={"n": at}) for at in range(120)])
    conditions = [ComparisonFilter(type="ne", key="n", value=at) for at in range(99)]

    hits = await s3_vectors.query(name, near((1, 0), 3, CompoundFilter(type="and", filters=conditions)))

    assert keys(hits) == ["099", "100", "101"]


async def test_a_search_ends_after_the_most_results_that_a_query_has(
    s3_vectors: S3VectorsIndex, vectors: S3VectorsServer, name: str
) -> None:
    await s3_vectors.create(name, 1)
    await s3_vectors.upsert(name, [entry(f"{at:03}", (1,), attributes={"by": "x"}) for at in range(300)])

    assert await s3_vectors.query(name, near((1,), 2, ComparisonFilter(type="gt", key="by", value="y"))) == []
    assert all(each.get("topK", 1) <= TOP_K for each in vectors.bodies)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (402, "ServiceQuotaExceededException"),
        (429, "TooManyRequestsException"),
        (500, "InternalServerException"),
        (503, "ServiceUnavailableException"),
    ],
)
async def test_a_service_that_cannot_answer_now_is_unavailable(
    s3_vectors: S3VectorsIndex, vectors: S3VectorsServer, name: str, status: int, code: str
) -> None:
    await s3_vectors.create(name, 2)
    vectors.script(*[error(status, code, "Later")] * 3)

    with pytest.raises(StoreUnavailable):
        await s3_vectors.query(name, near((1, 0)))


async def test_a_lost_connection_is_repeated_and_then_unavailable(
    s3_vectors: S3VectorsIndex, vectors: S3VectorsServer, name: str
) -> None:
    await s3_vectors.create(name, 2)
    vectors.script(*[Reply(status=0)] * 2)
    assert await s3_vectors.query(name, near((1, 0))) == []

    vectors.script(*[Reply(status=0)] * 3)
    with pytest.raises(StoreUnavailable, match="does not respond"):
        await s3_vectors.query(name, near((1, 0)))


async def test_a_missing_permission_is_no_fault_of_the_caller(
    s3_vectors: S3VectorsIndex, vectors: S3VectorsServer, name: str
) -> None:
    vectors.script(error(403, "AccessDeniedException", "not authorized"))

    with pytest.raises(StintError, match="Check the permissions") as raised:
        await s3_vectors.query(name, near((1, 0)))

    assert type(raised.value) is StintError


async def test_an_index_that_was_created_again_with_another_dimension_is_noticed(
    s3_vectors: S3VectorsIndex, vectors: S3VectorsServer, name: str
) -> None:
    await s3_vectors.create(name, 2)
    del vectors.indexes[name]
    other = S3VectorsIndex(s3_vectors._bucket, s3_vectors._objects)
    await other.create(name, 3)

    with pytest.raises(StintError):
        await s3_vectors.upsert(name, [entry("a", (1, 0))])

    await s3_vectors.upsert(name, [entry("a", (1, 0, 0))])
    assert vectors.keys(name) == ["a"]


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("", ""),
        (" ?! ", ""),
        ("word", "word"),
        ("a" * 2_000, "a" * 1_024),
        ("ab " * 500, ("ab " * 341).strip()),
        ("x" * 1_020 + " abc def", "x" * 1_020 + " abc"),
        ("x" * 1_020 + " abcd", "x" * 1_020),
    ],
)
def test_a_question_is_cut_at_1024_characters_between_words(text: str, sent: str) -> None:
    assert query_text(text) == sent


async def test_a_chunk_that_is_written_again_while_it_is_read_is_found(
    s3_vectors: S3VectorsIndex, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await s3_vectors.create(name, 2)
    await s3_vectors.upsert(name, [entry("a", (1, 0), LONG), entry("b", (1, 1), "short")])
    changes: list[Attributes] = [{"year": 2026}]
    read = BucketObjects.read

    async def change_and_read(objects: BucketObjects, key: str, known: str = "") -> tuple[bytes, str] | None:
        if changes:
            await s3_vectors.update_attributes(name, ["a"], changes.pop())
        return await read(objects, key, known)

    monkeypatch.setattr(BucketObjects, "read", change_and_read)

    found = await s3_vectors.get(name, ["a", "b"])

    assert sorted(found) == ["a", "b"]
    assert (found["a"].text, found["a"].attributes) == (LONG, {"year": 2026})
