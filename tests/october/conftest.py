from collections.abc import Iterator

import pytest
from tests.api.app_fixture import AppFixture, Served
from tests.api.conftest import app_fixture, client, http, server, shared_app_fixture, shared_server
from tests.october.client import PYTHON, OctoberClient

__all__ = ["app_fixture", "client", "http", "server", "shared_app_fixture", "shared_server"]


@pytest.fixture(scope="session")
def shared_client(shared_server: Served) -> Iterator[OctoberClient]:
    if not PYTHON.exists():
        pytest.skip("the client of October 2024 is not installed: make test-october")
    with OctoberClient(shared_server.url) as client:
        yield client


@pytest.fixture
def october(shared_client: OctoberClient, app_fixture: AppFixture, server: Served) -> OctoberClient:
    """Return the client of October 2024, for a tenant of its own."""
    return shared_client
