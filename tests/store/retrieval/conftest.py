import pytest
from tests.store.conftest import Cloud

from stint.domain.ids import new_id
from stint.retrieval.packed.index import PackedIndex
from stint.retrieval.port import VectorIndex
from stint.store.objects import BucketObjects

KINDS = ("packed",)


@pytest.fixture(params=KINDS)
def index(request: pytest.FixtureRequest) -> VectorIndex:
    """Return each adapter in turn."""
    made: VectorIndex = request.getfixturevalue(request.param.replace("-", "_"))
    return made


@pytest.fixture
def packed(cloud: Cloud) -> PackedIndex:
    return PackedIndex(BucketObjects(lambda: cloud.s3, cloud.bucket), 64_000_000)


@pytest.fixture
def name() -> str:
    """Return the name of an index that does not exist yet."""
    return f"vs-{new_id().replace('-', '')}"
