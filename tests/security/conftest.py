import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from infra.local.engine import Engine
from infra.openapi.document import describe_api
from tests.security.registrations import CONFIGURED
from tests.security.stack import Stack
from tests.security.summary import pytest_unconfigure  # noqa: F401 - a hook
from tests.security.tricks import PUBLIC, look_up
from tests.servers.scripted_http import Reply, ScriptedHTTPServer


@pytest.fixture(scope="session")
def model_server() -> Iterator[ScriptedHTTPServer]:
    """Yield the server of the models `vision/`, for which images are fetched. It fails unless it has a reply."""
    with ScriptedHTTPServer(lambda _: Reply(status=500)) as server:
        server.closes_connections = True
        yield server


@pytest.fixture(scope="session")
def stack(engine: Engine, mcp_server: str, model_server: ScriptedHTTPServer) -> Iterator[Stack]:
    """Yield the API behind its authorizer."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in engine.environment().items():
            patch.setenv(name, value)
        patch.setattr(socket, "getaddrinfo", look_up)
        hosts = f"{PUBLIC},{mcp_server.removeprefix('http://')}"
        conf: dict[str, Any] = {"toolgroup_id": "mcp::conf", "provider_id": "model-context-protocol"}
        conf |= {"mcp_endpoint": {"uri": f"{mcp_server}/mcp"}}
        settings = {
            "STINT_REGISTRY": json.dumps({"toolgroups": [conf], **CONFIGURED}),
            "STINT_ALLOWED_HOSTS": hosts,
            "STINT_PROVIDERS": json.dumps([{"id": "vision", "base_url": f"{model_server.url}/v1"}]),
            "STINT_IMAGE_MODEL": "vision/draw",
        }
        with Stack(engine, settings) as stack:
            describe_api()  # builds the routes, for which a first request would wait
            yield stack
