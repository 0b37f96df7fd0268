import os
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.servers.s3_vectors import S3VectorsServer
from tests.store.conftest import Cloud

from stint.domain.ids import new_id
from stint.retrieval.packed.index import PackedIndex
from stint.retrieval.port import VectorIndex
from stint.retrieval.s3_vectors.client import VectorBucket
from stint.retrieval.s3_vectors.index import S3VectorsIndex
from stint.store.objects import BucketObjects

ACCOUNT = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
"""The shell's credentials. With STINT_TEST_VECTOR_BUCKET, a vector bucket of that account is tested, too:

pytest -m aws --force-enable-socket --allow-hosts "" tests/store/retrieval
"""
BUCKET = os.environ.get("STINT_TEST_VECTOR_BUCKET", "")
KINDS = ("packed", "s3-vectors", *([pytest.param("account", marks=pytest.mark.aws)] if BUCKET else ()))


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest) -> VectorIndex:
    """Return each adapter in turn."""
    made: VectorIndex = request.getfixturevalue(request.param.replace("-", "_"))
    return made


@pytest.fixture
def packed(cloud: Cloud) -> PackedIndex:
    return PackedIndex(BucketObjects(cloud.objects), 64_000_000)


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
    return S3VectorsIndex(vector_bucket, BucketObjects(cloud.objects))


@pytest.fixture
async def account(name: str, cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[S3VectorsIndex]:
    """Yield an index in a real vector bucket, and delete it."""
    for variable, value in ACCOUNT.items():
        monkeypatch.setenv(variable, value)
    made = S3VectorsIndex(VectorBucket(BUCKET), BucketObjects(cloud.objects))
    yield made
    await made.drop(name)


@pytest.fixture
def name() -> str:
    """Return the name of an index that does not exist yet."""
    return f"vs-{new_id().replace('-', '')}"
