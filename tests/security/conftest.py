import json
import socket
from collections.abc import Iterator

import pytest
from infra.local.engine import Engine
from tests.security.stack import Stack
from tests.security.summary import pytest_unconfigure  # noqa: F401 - a hook
from tests.security.tricks import PUBLIC, look_up

FETCHES_IMAGES = json.dumps([{"id": "vision", "base_url": "http://127.0.0.1:9/v1"}])
"""A model server, which does not answer, and for whose models images are fetched."""


@pytest.fixture(scope="session")
def stack(engine: Engine, mcp_server: str) -> Iterator[Stack]:
    """Yield the API behind its authorizer."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in engine.environment().items():
            patch.setenv(name, value)
        patch.setattr(socket, "getaddrinfo", look_up)
        hosts = f"{PUBLIC},{mcp_server.removeprefix('http://')}"
        with Stack(engine, {"STINT_ALLOWED_HOSTS": hosts, "STINT_PROVIDERS": FETCHES_IMAGES}) as stack:
            with stack.client(stack.create_key("warm").key) as http:
                http.get("/v1/openapi.json")
            yield stack
