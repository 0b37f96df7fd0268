from collections.abc import Iterator

import pytest
from infra.local.engine import Engine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The local AWS engine with the data resources, empty at first and shared: tests keep apart by tenant.

    `engine.outputs` holds TableName and BucketName, `engine.environment()` what points clients at it.
    """
    with Engine() as engine:
        yield engine
