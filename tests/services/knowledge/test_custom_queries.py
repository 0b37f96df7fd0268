"""Custom query generators: real functions and endpoints of this machine, and their hostile answers."""

import json
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from infra.local.functions import Functions, FunctionSpec
from infra.local.lambda_api import lambda_api
from infra.local.server import listen, serving
from tests.script_model import script
from tests.servers.scripted_http import Reply, ScriptedHTTPServer
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.domain.errors import InvalidRequest, StintError, ToolUnavailable
from stint.domain.llama_stack.memory_retrieval import CustomQueryGeneratorConfig
from stint.domain.llama_stack.registrations import ToolGroupRegisterRequest
from stint.net.guard import Guard
from stint.services.knowledge import custom_query_generator
from stint.services.knowledge.custom_query_generator import CustomQueries
from stint.tools.http.provider import HttpEndpoints
from stint.tools.knowledge.provider import KnowledgeTools
from stint.tools.lambda_function.provider import LambdaFunctions
from stint.tools.port import Invocation, Toolgroup, ToolOutcome, ToolProvider

INLINE = "builtin::remote_execution"


@pytest.fixture
async def function(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A real function process behind the local cloud's Lambda API."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    spec = FunctionSpec(
        name="queries",
        handler="queries.handler",
        code=Path(__file__).parent / "apps",
        layers=(),
        environment={},
        timeout=10,
        memory=128,
        wrapper=None,
        python=Path(sys.executable),
    )
    functions = Functions([spec], concurrency=2, log=lambda *_: None)
    with listen() as listener:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{listener.getsockname()[1]}")
        async with serving(lambda_api(functions, {"queries"}), listener):
            yield spec.arn
        await functions.stop()


@pytest.fixture
def endpoint() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(lambda _: Reply((b"tea in Peru",))) as server:
        yield server


@pytest.fixture
def tenant_fixture(cloud: Cloud, tenant: str) -> TurnFixture:
    providers: dict[str, ToolProvider] = {
        "lambda-function": LambdaFunctions(["own"]),
        "remote-execution": HttpEndpoints(Guard(["127.0.0.1"])),
    }
    return TurnFixture(cloud.store, tenant, script(), providers=providers)


def queries_of(fixture: TurnFixture) -> CustomQueries:
    return CustomQueries(lambda: fixture.services.toolgroups.tools)


def at(url: str, **endpoint: Any) -> CustomQueryGeneratorConfig:
    args = {"tools": [{"name": "write_query", "url": url, "method": "POST", **endpoint}]}
    return CustomQueryGeneratorConfig(type="custom", toolgroup=INLINE, args=args)


async def register(fixture: TurnFixture, name: str, provider: str, *tools: dict[str, Any]) -> None:
    request = ToolGroupRegisterRequest(toolgroup_id=name, provider_id=provider, args={"tools": list(tools)})
    await fixture.services.toolgroups.register(request)


async def test_a_registered_function_writes_the_query(tenant_fixture: TurnFixture, function: str) -> None:
    await register(tenant_fixture, "query_generator", "lambda-function", {"name": "q", "function": "queries"})
    queries, named = queries_of(tenant_fixture), CustomQueryGeneratorConfig(type="custom")

    await queries.check(named, "p")

    assert await queries.generate(named, ["tea", "in Peru"]) == "TEA IN PERU"
    assert await queries.generate(named, ["object"]) == "from an object"
    for text, says in (
        ("list", "must return a text"),
        ("number", "must return a text"),
        ("nothing", "returned no text"),
        ("huge", "returned 8001 characters; at most 8000"),
    ):
        with pytest.raises(InvalidRequest, match=says):
            await queries.generate(named, [text])
    with pytest.raises(ToolUnavailable, match="failed: The function failed: ValueError: no idea"):
        await queries.generate(named, ["fail"])


async def test_an_endpoint_gets_the_messages_and_returns_the_query(
    tenant_fixture: TurnFixture, endpoint: ScriptedHTTPServer
) -> None:
    found = await queries_of(tenant_fixture).generate(at(endpoint.url, headers={"X-Key": "k"}), ["tea", "Peru?"])

    [request] = endpoint.requests
    assert found == "tea in Peru"
    assert request.headers["x-key"] == "k"
    assert request.json() == {"messages": [{"role": "user", "content": "tea"}, {"role": "user", "content": "Peru?"}]}


@pytest.mark.parametrize(
    ("body", "query"), [(b'"tea"', "tea"), (b' {"query": " tea "}', "tea"), (b"[tea", "[tea"), (b"42", "42")]
)
async def test_a_query_is_a_text_or_json(
    tenant_fixture: TurnFixture, endpoint: ScriptedHTTPServer, body: bytes, query: str
) -> None:
    endpoint.script(Reply((body,), headers={"Content-Type": "application/json"}))

    assert await queries_of(tenant_fixture).generate(at(endpoint.url), ["x"]) == query


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply((b"x" * 8_001,)), "8001 characters"),
        (Reply((json.dumps({"query": "x" * 8_001}).encode(),)), "8001 characters"),
        (Reply((b"x" * 4_000_000,)), "failed"),
        (Reply((b"[" * 70_000,)), "70000 characters"),
        (Reply((b'{"query": null}',)), "must return a text"),
        (Reply((b"{}",)), "must return a text"),
        (Reply((b"[]",)), "must return a text"),
        (Reply((b" \n ",)), "returned no text"),
        (Reply((b"\x89PNG\r\n\x1a\n",), headers={"Content-Type": "image/png"}), "returned no text"),
        (Reply((b"x",), headers={"Content-Type": "application/zip"}), "returned no text"),
        (Reply((b"no",), status=500), "500: no"),
        (Reply((b"",), status=302, headers={"location": "http://127.0.0.1/"}), "redirects"),
        (Reply((), status=0), "failed"),
    ],
)
async def test_a_hostile_answer_is_no_query(
    tenant_fixture: TurnFixture, endpoint: ScriptedHTTPServer, reply: Reply, says: str
) -> None:
    endpoint.script(reply)

    with pytest.raises(StintError, match=says):
        await queries_of(tenant_fixture).generate(at(endpoint.url), ["x"])


@pytest.mark.parametrize("own", [True, False])
async def test_a_generator_has_a_time_limit(
    tenant_fixture: TurnFixture, endpoint: ScriptedHTTPServer, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    endpoint.script(Reply((b"te",), ending="hang"))
    if not own:
        monkeypatch.setattr(custom_query_generator, "GENERATOR_SECONDS", 0.1)

    with pytest.raises(ToolUnavailable, match=r"did not respond within 0\.1 s"):
        await queries_of(tenant_fixture).generate(at(endpoint.url, **({"timeout": 0.1} if own else {})), ["x"])


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({}, "Toolgroup 'query_generator' is not registered.*Name a url or a registered toolgroup"),
        ({"toolgroup": "builtin::websearch"}, "is of the provider"),
        ({"toolgroup": "two"}, "has 2 tools. Name one of: two/a, two/b"),
        ({"toolgroup": "two/c"}, "has no tool 'c'"),
        ({"toolgroup": INLINE}, "must define its tools"),
        ({"toolgroup": INLINE, "args": {"tools": [{"name": "q", "function": "queries"}]}}, "malformed"),
        ({"toolgroup": INLINE, "args": {"tools": [{"name": "q", "url": "http://169.254.169.254/"}]}}, "cannot be used"),
        ({"toolgroup": INLINE, "args": {"tools": [{"name": "q", "url": "file:///etc/passwd"}]}}, "malformed"),
    ],
)
async def test_a_generator_that_cannot_be_used_is_refused_by_name(
    tenant_fixture: TurnFixture, config: dict[str, Any], says: str
) -> None:
    tools = ({"name": name, "url": "http://127.0.0.1/"} for name in ("a", "b"))
    await register(tenant_fixture, "two", "remote-execution", *tools)
    queries, given = queries_of(tenant_fixture), CustomQueryGeneratorConfig(type="custom", **config)

    with pytest.raises(InvalidRequest, match=says) as refused:
        await queries.check(given, "the_field")

    assert refused.value.message.startswith("the_field: ")
    assert refused.value.param == "the_field"
    with pytest.raises(StintError):
        await queries.generate(given, ["x"])


async def test_a_function_of_the_stack_cannot_write_queries(tenant_fixture: TurnFixture) -> None:
    with pytest.raises(InvalidRequest, match="own"):
        await register(tenant_fixture, "query_generator", "lambda-function", {"name": "q", "function": "own"})


async def test_the_model_cannot_choose_a_generator(endpoint: ScriptedHTTPServer) -> None:
    seen: list[dict[str, Any]] = []

    async def search(arguments: Any, _: Any) -> ToolOutcome:
        seen.append(dict(arguments))
        return ToolOutcome("found")

    config = at(endpoint.url).model_dump()
    arguments = {"query": "x", "query_generator_config": config}
    tools, group = KnowledgeTools(lambda: search), Toolgroup("builtin::rag", "rag-runtime")

    await tools.invoke(group, Invocation("knowledge_search", arguments, "c"))
    await tools.invoke(
        group, Invocation("knowledge_search", arguments, "c", fixed=frozenset(["query_generator_config"]))
    )

    assert seen == [{"query": "x"}, arguments]
