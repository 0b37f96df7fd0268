"""One search in an index of S3 Vectors, by a vector or by words."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from stint.domain.errors import NotFound
from stint.domain.filters import Filter
from stint.retrieval.objects import ObjectStore
from stint.retrieval.port import Hit
from stint.retrieval.s3_vectors.client import VectorBucket
from stint.retrieval.s3_vectors.records import overflow_key, read_hit

TOP_K = 10_000
"""Most results of a query."""
WIDER = 4
Found = Mapping[str, Any]


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
