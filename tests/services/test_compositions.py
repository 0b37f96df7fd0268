"""Two compositions in one process, each of settings of its own."""

import json
from contextlib import suppress
from typing import Any, NoReturn

import pytest
from tests.script_model import deadline
from tests.servers import brave
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer
from tests.services.worker_fixture import FakeQueue
from tests.store.conftest import Cloud

from stint.apis.agents import AgentsServices
from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import compose, delete_agent_objects
from stint.bootstrap.openai import OpenAIComposition, compose_responses
from stint.bootstrap.restore import restore
from stint.domain.content import URL
from stint.domain.errors import InvalidRequest, StintError
from stint.domain.llama_stack.registrations import ToolGroupRegisterRequest
from stint.domain.openai.chat import ChatCompletionRequest
from stint.services.deletions import Deletions
from stint.services.responses.conversation_reader import nothing_known
from stint.services.responses.link_cache import LinkCache
from stint.settings import Settings, load_settings
from stint.tools.port import Invocation, Toolgroup

LOOPBACK = "127.0.0.1"
CALLS = {
    "model-context-protocol": "mcp_tool",
    "remote-execution": "get",
    "tavily-search": "web_search",
    "brave-search": "web_search",
    "wolfram-alpha": "wolfram_alpha",
}
"""A tool of each provider that sends requests through the guard."""


class Composed:
    """A tenant's services, all made of these settings."""

    def __init__(self, cloud: Cloud, tenant: str, **settings: Any) -> None:
        queue = FakeQueue()
        self.adapters = Adapters(Settings.model_validate(settings))
        deletions = Deletions(delete_agent_objects(cloud.store, queue.send), queue.send)
        self.services: AgentsServices = compose(tenant, self.adapters, cloud.store, deletions)
        self.responses = compose_responses(tenant, self.adapters, cloud.store, self.services, queue, LinkCache())

    async def call(self, provider: str, url: str) -> None:
        """Call a tool of a provider at an address. The result does not matter."""
        toolgroup = Toolgroup("g", provider, url, {"tools": [{"name": "get", "url": url}]})
        invocation = Invocation(CALLS[provider], {"query": "tea"}, "call_1")
        with suppress(StintError):
            await self.adapters.tool_providers[provider].invoke(toolgroup, invocation)

    async def search(self) -> str:
        """Search the web by the built-in toolgroup's provider."""
        toolgroup = Toolgroup("builtin::websearch", "brave-search")
        outcome = await self.adapters.tool_providers["brave-search"].invoke(
            toolgroup, Invocation("web_search", {"query": "tea"}, "call_1")
        )
        return str(outcome.content)

    async def complete(self) -> None:
        request = ChatCompletionRequest.model_validate(
            {"model": "openai/m", "messages": [{"role": "user", "content": "Hello"}]}
        )
        run = await self.responses.chat.start(request, deadline(10))
        async for _ in self.responses.chat.run(run):
            pass


async def test_a_host_that_one_composition_allows_is_closed_to_the_other(cloud: Cloud, tenant: str) -> None:
    closed, opened = Composed(cloud, tenant), Composed(cloud, tenant, allowed_hosts=LOOPBACK)
    with ScriptedHTTPServer(lambda _: Reply((b"hello",))) as server:
        assert (await opened.adapters.fetch(server.url)).body == b"hello"
        with pytest.raises(InvalidRequest):
            await closed.adapters.fetch(server.url)

        mcp = ToolGroupRegisterRequest(
            toolgroup_id="mcp::own", provider_id="model-context-protocol", mcp_endpoint=URL(uri=server.url)
        )
        with pytest.raises(InvalidRequest):
            await closed.services.toolgroups.register(mcp)
        assert (await opened.services.toolgroups.register(mcp)).identifier == "mcp::own"


@pytest.mark.parametrize("provider", CALLS)
async def test_tools_reach_a_host_only_if_their_own_composition_allows_it(
    cloud: Cloud, tenant: str, provider: str
) -> None:
    keys = dict.fromkeys(("tavily_api_key", "brave_api_key", "wolfram_api_key"), "some-long-key")
    with ScriptedHTTPServer(lambda _: Reply((b"{}",), 400)) as server:
        urls = dict.fromkeys(("tavily_base_url", "brave_base_url", "wolfram_base_url"), server.url)
        closed = Composed(cloud, tenant, **keys, **urls)
        opened = Composed(cloud, tenant, **keys, **urls, allowed_hosts=LOOPBACK)

        await closed.call(provider, server.url)
        assert server.requests == []

        await opened.call(provider, server.url)
        assert server.requests != []


async def test_each_composition_refuses_its_own_functions_as_tools(cloud: Cloud, tenant: str) -> None:
    def toolgroup_of(function: str) -> Toolgroup:
        return Toolgroup("lambda::g", "lambda-function", config={"tools": [{"name": "t", "function": function}]})

    for own, other in (("stint-a", "stint-b"), ("stint-b", "stint-a")):
        provider = Composed(cloud, tenant, own_functions=own).adapters.tool_providers["lambda-function"]
        await provider.check(toolgroup_of(other))
        with pytest.raises(InvalidRequest):
            await provider.check(toolgroup_of(own))


async def test_each_composition_calls_its_own_search_engine_with_its_own_key(cloud: Cloud, tenant: str) -> None:
    def compose_search(server: ScriptedHTTPServer, key: str) -> Composed:
        changed = {"allowed_hosts": LOOPBACK, "brave_base_url": f"{server.url}/res/v1", "brave_api_key": key}
        return Composed(cloud, tenant, **changed)

    with ScriptedHTTPServer(brave.answer) as one, ScriptedHTTPServer(brave.answer) as other:
        right, wrong = compose_search(one, brave.KEY), compose_search(other, "BSA-wrong-key")

        assert json.loads(await right.search())["query"] == "tea"
        with pytest.raises(StintError):
            await wrong.search()

        assert len(one.requests) == len(other.requests) == 1


async def test_each_composition_asks_its_own_server_of_models(cloud: Cloud, tenant: str) -> None:
    def refuse(_: Received) -> Reply:
        return Reply((b"{}",), 401, {"connection": "close"})

    with ScriptedHTTPServer(refuse) as one, ScriptedHTTPServer(refuse) as other:
        for server, key in ((one, "sk-first-key"), (other, "sk-other-key")):
            composed = Composed(cloud, tenant, openai_base_url=server.url, openai_api_key=key)
            with pytest.raises(StintError):
                await composed.complete()

        sent = [[each.headers["authorization"] for each in server.requests] for server in (one, other)]
    assert sent == [["Bearer sk-first-key"], ["Bearer sk-other-key"]]


async def test_each_composition_has_its_own_providers_shields_and_limits(cloud: Cloud, tenant: str) -> None:
    plain = Composed(cloud, tenant, scripted_models=False, tool_result_bytes=10)
    demo = Composed(cloud, tenant, scripted_models=True, default_model="scripted/demo", tool_result_bytes=20)

    listed = [{model.identifier for model in await each.services.registry.list_models()} for each in (plain, demo)]
    boxes = [each.services.toolgroups.tools.result_bytes for each in (plain, demo)]

    assert ["scripted/demo" in models for models in listed] == [False, True]
    assert boxes == [10, 20]

    for mappings in ("tool_providers", "shield_providers"):
        one, other = (getattr(each.adapters, mappings) for each in (plain, demo))
        assert [name for name in one if one[name] is other[name]] == []


def test_parts_are_made_without_the_environment(monkeypatch: pytest.MonkeyPatch, tenant: str) -> None:
    """Every provider, model and use case is made after the settings were read, when reading them again fails."""

    def refuse(*_: object, **__: object) -> NoReturn:
        raise AssertionError("the environment was read again")

    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "us-east-1")
    settings = Settings.model_validate({"scripted_models": True, "openai_base_url": "http://127.0.0.1:9/v1"})
    load_settings.cache_clear()
    monkeypatch.setattr(Settings, "__init__", refuse)
    composition = OpenAIComposition(lambda: settings)

    composition.make_event_requests(tenant)

    adapters = composition.adapters
    assert len([*adapters.tool_providers.values(), *adapters.shield_providers.values()]) == 9
    for model in ("scripted/demo", "openai/m", "bedrock/m"):
        adapters.router.resolve(model)


def test_a_restored_process_remembers_nothing_of_before_the_snapshot() -> None:
    composition = OpenAIComposition(Settings)
    before = composition.links
    before.put_conversation("t", "conv_a", nothing_known())

    restore(composition)

    assert composition.links is not before
    assert composition.links.get_conversation("t", "conv_a") is None
