from collections.abc import Iterator

import pytest
from tests.servers.s3_vectors import S3VectorsServer
from tests.store.conftest import Cloud

from stint.domain.ids import new_id
from stint.retrieval.packed.index import PackedIndex
from stint.retrieval.port import VectorIndex
from stint.retrieval.s3_vectors.client import VectorBucket
from stint.retrieval.s3_vectors.index import S3VectorsIndex
from stint.store.objects import BucketObjects

KINDS = ("packed", "s3-vectors")


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest) -> VectorIndex:
    """Return each adapter in turn."""
    made: VectorIndex = request.getfixturevalue(request.param.replace("-", "_"))
    return made


@pytest.fixture
def packed(cloud: Cloud) -> PackedIndex:
    return PackedIndex(BucketObjects(lambda: cloud.s3, cloud.bucket), 64_000_000)


@pytest.fixture(scope="session")
def vectors_server() -> Iterator[S3VectorsServer]:
    with S3VectorsServer() as server:
        yield server


@pytest.fixture
def vectors(vectors_server: S3VectorsServer) -> S3VectorsServer:
    """Return the server of S3 Vectors without what earlier tests left."""
    vectors_server.forget()
    vectors_server.calls.clear()
    return vectors_server


@pytest.fixture
def vector_bucket(vectors: S3VectorsServer, monkeypatch: pytest.MonkeyPatch) -> VectorBucket:
    for variable, value in vectors.environment().items():
        monkeypatch.setenv(variable, value)
    return VectorBucket("vectors")


@pytest.fixture
def s3_vectors(vector_bucket: VectorBucket, cloud: Cloud) -> S3VectorsIndex:
    return S3VectorsIndex(vector_bucket, BucketObjects(lambda: cloud.s3, cloud.bucket))


@pytest.fixture
def name() -> str:
    """Return the name of an index that does not exist yet."""
    return f"vs-{new_id().replace('-', '')}"
