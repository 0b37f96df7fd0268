"""Fake Amazon S3 Vectors. It checks requests and its own answers against botocore's model, and refuses what AWS does.

Vectors are compared by brute force, and texts by bm25s. Equal scores are in no particular order.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import bm25s
from tests.servers.converse_stream import error
from tests.servers.s3_vectors_filters import check_filter, matches
from tests.servers.s3_vectors_model import Refused, check_input, check_metadata, check_output, check_vector
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer

BODY_BYTES, TOP_K, GET_KEYS, PAGE = 20 * 1024 * 1024, 10_000, 100, 100
ARN = "arn:aws:s3vectors:us-east-1:123456789012:bucket"


@dataclass
class StoredVector:
    key: str
    data: list[float]
    metadata: dict[str, Any]


@dataclass
class StoredIndex:
    name: str
    dimension: int
    metric: str
    configuration: dict[str, Any]
    vectors: dict[str, StoredVector] = field(default_factory=dict)

    @property
    def hidden(self) -> set[str]:
        return set(self.configuration.get("nonFilterableMetadataKeys", []))

    @property
    def searchable(self) -> set[str]:
        return {each["metadataKey"] for each in self.configuration.get("textSearchConfigurations", [])}


class S3VectorsServer(ScriptedHTTPServer):
    """One vector bucket in ENHANCED mode. `calls` counts the operations, and `vectors` those that were written."""

    def __init__(self, bucket: str = "vectors", port: int = 0) -> None:
        super().__init__(self._reply, port)
        self.bucket = bucket
        self.calls: Counter[str] = Counter()
        self.indexes: dict[str, StoredIndex] = {}
        self.page = PAGE
        self._lock = threading.Lock()

    def environment(self) -> dict[str, str]:
        return {"AWS_ENDPOINT_URL_S3VECTORS": self.url}

    def keys(self, index: str) -> list[str]:
        """Return the keys of all vectors of an index."""
        return sorted(self.indexes[index].vectors) if index in self.indexes else []

    def _reply(self, received: Received) -> Reply:
        operation = received.path.removeprefix("/")
        with self._lock:
            self.calls[operation] += 1
            try:
                document = self._call(operation, received.body)
            except Refused as refused:
                return error(refused.status, refused.code, str(refused))
        return Reply((json.dumps(document).encode(),))

    def _call(self, operation: str, body: bytes) -> dict[str, Any]:
        operations: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "CreateIndex": self._create_index,
            "GetIndex": self._get_index,
            "DeleteIndex": self._delete_index,
            "PutVectors": self._put_vectors,
            "GetVectors": self._get_vectors,
            "DeleteVectors": self._delete_vectors,
            "QueryVectors": self._query_vectors,
        }
        if operation not in operations:
            raise Refused(404, "UnknownOperationException", operation)
        if len(body) > BODY_BYTES:
            raise Refused(413, "ValidationException", "The request is larger than 20 MiB.")
        request = json.loads(body)
        check_input(operation, request)
        if request.get("vectorBucketName") != self.bucket:
            raise Refused(404, "NotFoundException", "The specified vector bucket could not be found")
        answer = operations[operation](request)
        check_output(operation, answer)
        return answer

    def _find(self, request: dict[str, Any]) -> StoredIndex:
        if request["indexName"] not in self.indexes:
            raise Refused(404, "NotFoundException", "The specified index could not be found")
        return self.indexes[request["indexName"]]

    def _create_index(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["indexName"]
        if re.fullmatch(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", name) is None:
            raise Refused.invalid("indexName", "Invalid index name")
        if name in self.indexes:
            raise Refused(409, "ConflictException", "An index with the specified name already exists")
        configuration = request.get("metadataConfiguration", {})
        self.indexes[name] = StoredIndex(name, request["dimension"], request["distanceMetric"], configuration)
        return {"indexArn": f"{ARN}/{self.bucket}/index/{name}"}

    def _get_index(self, request: dict[str, Any]) -> dict[str, Any]:
        index = self._find(request)
        described = {
            "vectorBucketName": self.bucket,
            "indexName": index.name,
            "indexArn": f"{ARN}/{self.bucket}/index/{index.name}",
            "creationTime": 1_763_800_000,
            "dataType": "float32",
            "dimension": index.dimension,
            "distanceMetric": index.metric,
            "metadataConfiguration": index.configuration,
            "indexMode": "ENHANCED",
        }
        return {"index": described}

    def _delete_index(self, request: dict[str, Any]) -> dict[str, Any]:
        del self.indexes[self._find(request).name]
        return {}

    def _put_vectors(self, request: dict[str, Any]) -> dict[str, Any]:
        index = self._find(request)
        for at, vector in enumerate(request["vectors"]):
            check_vector(vector["data"]["float32"], index.dimension, index.metric, f"vectors.{at}.data")
            check_metadata(vector.get("metadata", {}), index.hidden, f"vectors.{at}.metadata")
        if len({vector["key"] for vector in request["vectors"]}) < len(request["vectors"]):
            raise Refused.invalid("vectors", "The request contains duplicate keys")
        for vector in request["vectors"]:
            index.vectors[vector["key"]] = StoredVector(
                vector["key"], vector["data"]["float32"], vector.get("metadata", {})
            )
        return {}

    def _get_vectors(self, request: dict[str, Any]) -> dict[str, Any]:
        index = self._find(request)
        found = [index.vectors[key] for key in request["keys"] if key in index.vectors]
        if len(request["keys"]) > GET_KEYS:
            raise Refused.invalid("keys", f"A request has at most {GET_KEYS} keys")
        return {"vectors": [stored(each, request) for each in found]}

    def _delete_vectors(self, request: dict[str, Any]) -> dict[str, Any]:
        index = self._find(request)
        for key in request["keys"]:
            index.vectors.pop(key, None)
        return {}

    def _query_vectors(self, request: dict[str, Any]) -> dict[str, Any]:
        index = self._find(request)
        if request["topK"] > TOP_K:
            raise Refused.invalid("topK", f"topK is at most {TOP_K}")
        check_filter(request.get("filter"), index.hidden)
        vector, texts = request.get("queryVector"), request.get("queryTexts", [])
        if (vector is None) == (not texts):
            raise Refused.invalid("queryVector", "This server searches by a vector or by texts, not by both")
        if vector is not None:
            check_vector(vector["float32"], index.dimension, index.metric, "queryVector")
            ranked = nearest(index, vector["float32"])
        else:
            ranked = by_words(index, texts)
        passing = [each for each in ranked if matches(request.get("filter"), each[0].metadata)]
        passing = passing[: request["topK"]]
        start = int(request.get("nextToken", "0"))
        page = [shown(each, score, request, by_text=vector is None) for each, score in passing[start:][: self.page]]
        more = {"nextToken": str(start + self.page)} if len(passing) > start + self.page else {}
        return {"vectors": page, "distanceMetric": index.metric, **more}


def stored(each: StoredVector, request: dict[str, Any]) -> dict[str, Any]:
    data = {"data": {"float32": list(each.data)}} if request.get("returnData") else {}
    return {"key": each.key, **data, **({"metadata": each.metadata} if request.get("returnMetadata") else {})}


def shown(each: StoredVector, score: float, request: dict[str, Any], *, by_text: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"key": each.key}
    if request.get("returnMetadata"):
        found["metadata"] = each.metadata
    if not by_text and request.get("returnDistance"):
        found["distance"] = score
    if by_text and request.get("returnScores"):
        key = request["queryTexts"][0]["metadataKey"]
        found["scores"] = {"bm25Scores": [{"metadataKey": key, "score": score}]}
    return found


def nearest(index: StoredIndex, query: Sequence[float]) -> list[tuple[StoredVector, float]]:
    scored = [(each, 1 - cosine(each.data, query)) for each in index.vectors.values()]
    # The stable order of equal distances is the reverse of that of the keys, which no client should rely on.
    return sorted(sorted(scored, key=lambda one: one[0].key, reverse=True), key=lambda one: one[1])


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    lengths = sum(x * x for x in one) ** 0.5 * sum(x * x for x in other) ** 0.5
    return round(float(sum(x * y for x, y in zip(one, other, strict=True)) / lengths), 7)


def by_words(index: StoredIndex, texts: Sequence[dict[str, str]]) -> list[tuple[StoredVector, float]]:
    (query,) = texts
    key = query["metadataKey"]
    if key not in index.searchable:
        raise Refused.invalid("queryTexts", f"The metadata key {key} is not configured for text search")
    listed = [each for each in index.vectors.values() if each.metadata.get(key)]
    wanted = list(dict.fromkeys(words(query["text"])))
    corpus = [words(each.metadata[key]) for each in listed]
    wanted = [word for word in wanted if any(word in text for text in corpus)]
    if not wanted:
        return []
    ranking = bm25s.BM25(method="lucene")
    ranking.index(corpus, show_progress=False)
    found = [(each, float(score)) for each, score in zip(listed, ranking.get_scores(wanted), strict=True) if score > 0]
    return sorted(sorted(found, key=lambda one: one[0].key, reverse=True), key=lambda one: -one[1])


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.lower())
