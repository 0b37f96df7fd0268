"""Two compositions in one process, each of settings of its own."""

import json
from typing import Any

import pytest
from tests.servers import brave
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer
from tests.services.turn_fixture import deadline
from tests.services.worker_fixture import Desk
from tests.store.conftest import Cloud

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import compose, delete_agent_objects
from stint.bootstrap.openai import compose_responses
from stint.domain.content import URL
from stint.domain.errors import InvalidRequest, StintError
from stint.domain.llama_stack.registrations import ToolGroupRegisterRequest
from stint.domain.openai.chat import ChatCompletionRequest
from stint.services.agents_api import AgentsServices
from stint.services.deletions import Deletions
from stint.settings import Settings
from stint.tools.port import Invocation, Toolgroup

LOOPBACK = "127.0.0.1"


class Composed:
    """A tenant's services, all made of these settings."""

    def __init__(self, cloud: Cloud, tenant: str, **settings: Any) -> None:
        desk = Desk()
        self.adapters = Adapters(Settings.model_validate(settings))
        deletions = Deletions(delete_agent_objects(cloud.store), desk.send)
        self.services: AgentsServices = compose(tenant, self.adapters, cloud.store, deletions)
        self.responses = compose_responses(tenant, self.adapters, cloud.store, self.services, desk)

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


async def test_each_composition_calls_its_own_search_engine_with_its_own_key(cloud: Cloud, tenant: str) -> None:
    def compose_search(server: ScriptedHTTPServer, key: str) -> Composed:
        changed = {"allowed_hosts": LOOPBACK, "brave_base_url": f"{server.url}/res/v1", "BRAVE_SEARCH_API_KEY": key}
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
            composed = Composed(cloud, tenant, OPENAI_BASE_URL=server.url, OPENAI_API_KEY=key)
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
    guards = [each.adapters.shield_providers["llama-guard"] for each in (plain, demo)]
    assert guards[0] is not guards[1]
