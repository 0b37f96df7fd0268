from collections.abc import Iterator

import pytest
from tests.servers.model_responses import ModelResponsesServer


@pytest.fixture
def server() -> Iterator[ModelResponsesServer]:
    with ModelResponsesServer() as server:
        yield server
