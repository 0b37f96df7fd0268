import io
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from infra.local.engine import Engine
from infra.openapi.document import describe_api
from pydantic import SecretStr
from tests.security.registrations import CONFIGURED
from tests.security.secret_search import Search
from tests.security.stack import Stack
from tests.security.summary import pytest_unconfigure  # noqa: F401 - a hook
from tests.security.tricks import PUBLIC, look_up
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.bootstrap.trace_receivers import make_trace_sender
from stint.domain.schema import Schema
from stint.store.messaging import EventBridgeBus

TRACES_KEY = "mk/unlikely+traces-Zq99"
"""The key of the receiver of traces."""


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


@pytest.fixture
def trace_receiver() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(lambda _: Reply((b"{}",))) as server:
        yield server


@pytest.fixture
def search(
    stack: Stack,
    engine: Engine,
    written: io.StringIO,
    capsys: pytest.CaptureFixture[str],
    trace_receiver: ScriptedHTTPServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Search]:
    """Yield a search, while tenants whose first request comes now send traces with contents."""
    update = {"otlp_endpoint": trace_receiver.url, "otlp_headers": SecretStr(f"x-key={TRACES_KEY}")}
    settings = stack.settings.model_copy(update={**update, "traces_content": True, "otlp_timeout": 10_000})
    monkeypatch.setitem(vars(stack.composition.adapters), "trace_sender", make_trace_sender(settings))
    search, put = Search(stack, engine, written, capsys, trace_receiver), EventBridgeBus.put

    async def record(bus: EventBridgeBus, source: str, detail_type: str, detail: Schema) -> None:
        search.events.append(f"{detail_type} {detail.model_dump_json()}")
        await put(bus, source, detail_type, detail)

    monkeypatch.setattr(EventBridgeBus, "put", record)
    stack.queue.sent.clear()
    yield search
    stack.served.settle()
