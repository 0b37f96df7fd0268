"""A VectorIndex over the indexes of a vector bucket.

S3 Vectors limits what a vector's metadata may have: 2 KB that can be filtered, 40 KB in all. A chunk that exceeds them
is an object of the bucket, and its metadata has the object's key (`records.py`). Attributes that exceed them are not
filtered by the service, so searches filter what it finds again.

  operation           order
  upsert              objects, then vectors: a vector never names an object that is not there yet
  update_attributes   the same, then the objects that the vectors had before
  delete, drop        vectors, then objects: an object without a vector is found by nobody, and a repetition deletes it
  get, query          vectors, then their objects; a vector whose object is missing was deleted meanwhile

A vector of zeros has no direction, and the service refuses it. Such a chunk has another vector and the mark ZERO, by
which searches by vector exclude it.
"""

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stint.dataclasses import replace
from stint.domain.errors import Conflict, InvalidRequest, NotFound
from stint.domain.filters import Attributes, Filter
from stint.retrieval.entries import QUERY_VECTOR, check_entries, check_needs, last_of_each_key
from stint.retrieval.objects import ObjectStore
from stint.retrieval.port import Entry, Hit, IndexQuery, Vector
from stint.retrieval.rankers import fuse
from stint.retrieval.s3_vectors.client import VectorBucket
from stint.retrieval.s3_vectors.filters import ZERO, UnsatisfiableFilter, index_filter
from stint.retrieval.s3_vectors.records import (
    RECORD,
    TEXT,
    StoredChunk,
    overflow_key,
    overflow_prefix,
    read_hit,
    size,
    store_entry,
)
from stint.retrieval.words import query_text

PUT_VECTORS, DELETE_VECTORS, GET_VECTORS, PUT_BYTES = 500, 500, 100, 16_000_000
"""Vectors of a call, and its bytes; S3 Vectors accepts 20 MiB."""
DIGITS, NUMBER_BYTES = 9, 13
"""Decimal places of a component, as many as 32 bits have, and its bytes in a request."""
TINY = 1.1754943508222875e-38
"""The smallest normal number of 32 bits."""
ATTEMPTS = 3
"""Reads of a vector that is replaced while it is read."""
StoredVector = tuple[dict[str, Any], StoredChunk]
"""The key and numbers of a vector, and how the rest of its chunk is stored."""

TOP_K = 10_000
"""Most results of a query."""
WIDER = 4
Found = Mapping[str, Any]


class S3VectorsIndex:
    """A VectorIndex over the indexes of a vector bucket. `objects` has what exceeds the limits of metadata.

    The dimensions of indexes that this process wrote are remembered.
    """

    def __init__(self, bucket: VectorBucket, objects: ObjectStore) -> None:
        self._bucket, self._objects = bucket, objects
        self._dimensions: dict[str, int] = {}

    async def create(self, index: str, dimension: int) -> None:
        try:
            await self._bucket.call("create_index", index, **description(dimension))
            self._dimensions[index] = dimension
        except Conflict:
            self._dimensions.pop(index, None)
            # Asked again, since the index may have been dropped and created by another process.
            found = await self._dimension(index)
            if found != dimension:
                raise Conflict(f"Vector index {index!r} has dimension {found}, not {dimension}.") from None

    async def _dimension(self, index: str) -> int:
        if index not in self._dimensions:
            answer = await self._bucket.call("get_index", index)
            self._dimensions[index] = answer["index"]["dimension"]
        return self._dimensions[index]

    async def upsert(self, index: str, entries: Sequence[Entry]) -> None:
        dimension = await self._dimension(index)
        check_entries(entries, dimension)
        try:
            await self._put(index, (make_vector(index, entry) for entry in last_of_each_key(entries)))
        except (NotFound, InvalidRequest):  # it was dropped, and may have been created again with another dimension
            self._dimensions.pop(index, None)
            raise

    async def _put(self, index: str, vectors: Iterable[StoredVector]) -> None:
        """Write vectors, after what the bucket has of them."""
        for batch in batches(vectors):
            # Each object has a new key, so nobody reads one that is being replaced.
            await asyncio.gather(*(self._objects.write(each.key, each.body) for _, each in batch if each.key))
            put = [vector | {"metadata": each.metadata} for vector, each in batch]
            await self._bucket.call("put_vectors", index, vectors=put)

    async def update_attributes(self, index: str, keys: Sequence[str], attributes: Attributes) -> None:
        for at in range(0, len(keys), GET_VECTORS):
            some = list(dict.fromkeys(keys[at : at + GET_VECTORS]))
            answer = await self._bucket.call("get_vectors", index, keys=some, returnData=True, returnMetadata=True)
            hits = await IndexSearch(self._bucket, self._objects, index).read(answer["vectors"])
            found = [each for each in answer["vectors"] if each["key"] in hits]
            await self._put(index, (with_attributes(index, each, hits[each["key"]], attributes) for each in found))
            await self._objects.delete([key for each in found if (key := overflow_key(each["metadata"]))])

    async def delete(self, index: str, keys: Sequence[str]) -> None:
        for at in range(0, len(keys), DELETE_VECTORS):
            await self._bucket.call("delete_vectors", index, keys=list(dict.fromkeys(keys[at : at + DELETE_VECTORS])))
        if keys:
            # By prefix, because the key of an object is known only from the vector, which is deleted.
            prefixes = tuple(overflow_prefix(index, key) for key in keys)
            kept = await self._objects.keys(overflow_prefix(index))
            await self._objects.delete([each for each in kept if each.startswith(prefixes)])

    async def get(self, index: str, keys: Sequence[str]) -> dict[str, Hit]:
        search, hits, wanted = IndexSearch(self._bucket, self._objects, index), dict[str, Hit](), list(keys)
        for _ in range(ATTEMPTS):
            replaced: list[str] = []
            for at in range(0, len(wanted), GET_VECTORS):
                some = list(dict.fromkeys(wanted[at : at + GET_VECTORS]))
                answer = await self._bucket.call("get_vectors", index, keys=some, returnMetadata=True)
                hits |= await search.read(answer["vectors"])
                replaced += [each["key"] for each in answer["vectors"] if each["key"] not in hits]
            # The object of such a vector was deleted after the call: the vector has another one, or is deleted, too.
            wanted = replaced
        return hits

    async def query(self, index: str, query: IndexQuery) -> list[Hit]:
        check_needs(query)
        try:
            if query.mode == "hybrid":
                return await self._query_both(index, query)
            return await (
                self._query_vectors(index, query) if query.mode == "vector" else self._query_text(index, query)
            )
        except UnsatisfiableFilter:
            return []

    async def _query_vectors(self, index: str, query: IndexQuery) -> list[Hit]:
        vector = unit(query.vector or ())
        if vector is None:
            return []
        search: dict[str, Any] = {"queryVector": {"float32": vector}, "returnDistance": True}
        try:
            return await self._search(index, query, search, by_vector=True)
        except InvalidRequest as error:  # a search may not read the index's dimension
            raise InvalidRequest(f"{QUERY_VECTOR} has dimension {len(vector)}. {error.message}") from error

    async def _query_text(self, index: str, query: IndexQuery) -> list[Hit]:
        text = query_text(query.text or "")
        if not text:
            return []
        search: dict[str, Any] = {"queryTexts": [{"text": text, "metadataKey": TEXT}], "returnScores": True}
        return await self._search(index, query, search, by_vector=False)

    async def _search(self, index: str, query: IndexQuery, search: dict[str, Any], *, by_vector: bool) -> list[Hit]:
        condition = index_filter(query.filter, by_vector=by_vector)
        if condition is not None:
            search["filter"] = condition
        return await IndexSearch(self._bucket, self._objects, index).best(search, query.k, query.filter)

    async def _query_both(self, index: str, query: IndexQuery) -> list[Hit]:
        """Return the ranked results of both searches. S3 Vectors' own hybrid search has one ranker, without weights."""
        near, about = await asyncio.gather(self._query_vectors(index, query), self._query_text(index, query))
        hits = {hit.key: hit for hit in (*near, *about)}
        lists = [[(hit.key, hit.score) for hit in found] for found in (near, about)]
        return [replace(hits[key], score=score) for key, score in fuse(lists[0], lists[1], query.ranker)[: query.k]]

    async def drop(self, index: str) -> None:
        self._dimensions.pop(index, None)
        with suppress(NotFound):
            await self._bucket.call("delete_index", index)
        await self._objects.delete_all(overflow_prefix(index))


def description(dimension: int) -> dict[str, Any]:
    """Return the parameters of a new index. Metadata keys and text search can only be set when it is created."""
    configuration = {
        "nonFilterableMetadataKeys": [TEXT, RECORD],
        "textSearchConfigurations": [{"metadataKey": TEXT}],
    }
    return {
        "dataType": "float32",
        "dimension": dimension,
        "distanceMetric": "cosine",
        "metadataConfiguration": configuration,
    }


def make_vector(index: str, entry: Entry) -> StoredVector:
    """Return the vector of a chunk, with how the rest of it is stored."""
    vector = unit(entry.vector)
    data = vector or [1.0] + [0.0] * (len(entry.vector) - 1)
    return {"key": entry.key, "data": {"float32": data}}, store_entry(index, entry, zero=vector is None)


def with_attributes(index: str, found: Mapping[str, Any], hit: Hit, attributes: Attributes) -> StoredVector:
    """Return a stored vector with other attributes."""
    entry = Entry(hit.key, (), hit.text, hit.document, hit.generation, attributes, hit.metadata)
    stored = store_entry(index, entry, zero=ZERO in found["metadata"])
    return {"key": hit.key, "data": found["data"]}, stored


def batches(vectors: Iterable[StoredVector]) -> Iterator[list[StoredVector]]:
    """Yield the vectors of each call."""
    batch, size_of_batch = list[StoredVector](), 0
    for vector, stored in vectors:
        # As ASCII, a character has up to six times the bytes that it has in UTF-8.
        bytes_of_vector = NUMBER_BYTES * len(vector["data"]["float32"]) + 6 * size(stored.metadata)
        if batch and (len(batch) == PUT_VECTORS or size_of_batch + bytes_of_vector > PUT_BYTES):
            yield batch
            batch, size_of_batch = [], 0
        batch.append((vector, stored))
        size_of_batch += bytes_of_vector
    if batch:
        yield batch


def unit(vector: Vector) -> list[float] | None:
    """Return a vector of length 1, or None for zeros."""
    if max(map(abs, vector), default=0.0) < TINY:
        return None
    length = math.hypot(*vector)
    return [round(component / length, DIGITS) for component in vector]


class IndexSearch:
    """Queries of one index, repeated with more results until enough of them match the filter."""

    def __init__(self, bucket: VectorBucket, objects: ObjectStore, index: str) -> None:
        self._bucket, self._objects, self._index = bucket, objects, index

    async def best(self, parameters: Mapping[str, Any], k: int, condition: Filter | None) -> list[Hit]:
        """Return the best `k` chunks that match a filter; equal scores in the order of their keys.

        One result more is requested, since another chunk may have the score of the last one.
        """
        wanted, hits = k + 1, dict[str, Hit]()
        while True:
            found = await self._query(parameters, min(wanted, TOP_K))
            hits |= await self.read([each for each in found if each["key"] not in hits])
            matching = [hit for hit in hits.values() if condition is None or condition.matches(hit.attributes)]
            best = sorted(matching, key=lambda hit: (-hit.score, hit.key))[:k]
            last = min((score_of(each) for each in found), default=0.0)
            # Nothing more exists, or nothing that follows can be better than the last of the best.
            if len(found) < wanted or (len(best) == k and last < best[-1].score):
                return best
            wanted *= WIDER

    async def _query(self, parameters: Mapping[str, Any], most: int) -> list[Found]:
        """Return all pages of a query."""
        found: list[Found] = []
        more: dict[str, str] = {}
        while True:
            answer = await self._bucket.call(
                "query_vectors", self._index, **parameters, **more, topK=most, returnMetadata=True
            )
            found += answer["vectors"]
            if not answer.get("nextToken"):
                return found
            more = {"nextToken": answer["nextToken"]}

    async def read(self, found: Sequence[Found]) -> dict[str, Hit]:
        """Return chunks that were found, with what the bucket has of them."""
        hits = await asyncio.gather(*map(self._read_one, found))
        return {hit.key: hit for hit in hits if hit is not None}

    async def _read_one(self, found: Found) -> Hit | None:
        """Return a chunk, or None if it was deleted or replaced after the query."""
        key, body = overflow_key(found["metadata"]), None
        if key is not None:
            try:
                body, _ = await self._objects.read(key) or (b"", "")
            except NotFound:
                return None
        return read_hit(found["key"], score_of(found), found["metadata"], body)


def score_of(found: Found) -> float:
    """Return the cosine, or the score of BM25; 0 for a chunk that was not searched."""
    if "distance" in found:
        return 1 - float(found["distance"])
    return float(found["scores"]["bm25Scores"][0]["score"]) if "scores" in found else 0.0
