"""Toolgroups of a stack with a key for credentials: what is stored, shown and used."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.script_model import called, said, script
from tests.servers.kms import KEY, KmsServer
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict
from stint.domain.inference import ToolSignature
from stint.domain.llama_stack.agents import NewAgentConfig
from stint.domain.llama_stack.registrations import ToolGroupRegisterRequest
from stint.domain.tools import AgentToolGroupWithArgs
from stint.services.registry.toolgroups import Toolgroups
from stint.tools.port import MCP, Invocation, Toolgroup, ToolOutcome

PROVIDER = "lambda-function"
TOKEN = "tok-1234567890"
ARGS = {"headers": {"Authorization": f"Bearer {TOKEN}"}, "timeout": 3}


@dataclass
class RecordingToolProvider:
    """A provider that keeps the args of its calls."""

    configs: list[dict[str, Any]] = field(default_factory=list)
    endpoints: list[str | None] = field(default_factory=list)
    tool_name: str = "add"

    async def check(self, toolgroup: Toolgroup, /) -> None:
        self.configs.append(toolgroup.config)

    def known_tools(self, _: Toolgroup, __: dict[str, Any], /) -> list[ToolSignature] | None:
        return [ToolSignature(self.tool_name, "", {"type": "object"})]

    async def list_tools(self, toolgroup: Toolgroup, _: dict[str, Any], /) -> list[ToolSignature]:
        self.configs.append(toolgroup.config)
        self.endpoints.append(toolgroup.mcp_endpoint)
        return [ToolSignature(self.tool_name, "", {"type": "object"})]

    async def invoke(self, toolgroup: Toolgroup, _: Invocation, /) -> ToolOutcome:
        self.configs.append(toolgroup.config)
        self.endpoints.append(toolgroup.mcp_endpoint)
        return ToolOutcome("done")


def toolgroups_of(cloud: Cloud, tenant: str, provider: RecordingToolProvider) -> Toolgroups:
    """Return the toolgroups of a process."""
    model = script(said())
    fixture = TurnFixture(cloud.store, tenant, model, providers={PROVIDER: provider}, credentials_key_arn=KEY)
    return fixture.services.toolgroups


def request(**args: Any) -> ToolGroupRegisterRequest:
    return ToolGroupRegisterRequest(toolgroup_id="crm", provider_id=PROVIDER, args=ARGS | args)


@pytest.mark.usefixtures("kms")
async def test_the_table_has_no_credential_and_answers_are_masked(cloud: Cloud, tenant: str) -> None:
    toolgroups = toolgroups_of(cloud, tenant, RecordingToolProvider())

    registered = await toolgroups.register(request())
    listed = next(each for each in await toolgroups.list() if each.identifier == "crm")

    assert TOKEN not in str(cloud.items(tenant))
    for shown in (registered, listed, await toolgroups.get("crm")):
        assert (TOKEN in str(shown), shown.sealed, (shown.args or {})["timeout"]) == (False, None, 3)
    assert listed == registered


async def test_a_call_in_another_process_gets_the_credentials(cloud: Cloud, tenant: str, kms: KmsServer) -> None:
    await toolgroups_of(cloud, tenant, RecordingToolProvider()).register(request())
    seen = RecordingToolProvider()
    other = toolgroups_of(cloud, tenant, seen)

    await other.list()
    before = list(kms.operations)
    for _ in range(3):
        await other.invoke("crm/add", {}, {})

    assert seen.configs[-1] == ARGS
    assert before == ["Encrypt"]
    assert kms.operations == ["Encrypt", "Decrypt"]


@pytest.mark.usefixtures("kms")
async def test_the_same_toolgroup_may_be_registered_again(cloud: Cloud, tenant: str) -> None:
    toolgroups = toolgroups_of(cloud, tenant, RecordingToolProvider())
    first = await toolgroups.register(request())

    assert await toolgroups.register(request()) == first
    with pytest.raises(Conflict):
        await toolgroups.register(request(headers={"Authorization": "Bearer another-token"}))


async def test_a_toolgroup_without_credentials_calls_no_kms(cloud: Cloud, tenant: str, kms: KmsServer) -> None:
    toolgroups = toolgroups_of(cloud, tenant, RecordingToolProvider())

    await toolgroups.register(ToolGroupRegisterRequest(toolgroup_id="crm", provider_id=PROVIDER, args={"timeout": 3}))
    await toolgroups.invoke("crm/add", {}, {})

    assert kms.operations == []


def inline(**args: Any) -> dict[str, Any]:
    given = {"server_label": "shop", "server_url": "https://shop.example/mcp?key=k1l2m3n4o5", "authorization": TOKEN}
    return {"name": "builtin::mcp", "args": given | args}


async def make_agent(
    cloud: Cloud, tenant: str, provider: RecordingToolProvider, **settings: Any
) -> tuple[TurnFixture, str]:
    model, providers = script(called("add"), said("3")), {MCP: provider}
    made = TurnFixture(cloud.store, tenant, model, providers=providers, **settings)
    await made.open(toolgroups=[inline()])
    stored = await cloud.store.agents.get(tenant, made.agent_id)
    return made, stored.model_dump_json()


async def test_credentials_of_an_agents_server_are_stored_encrypted(cloud: Cloud, tenant: str, kms: KmsServer) -> None:
    provider = RecordingToolProvider()
    made, stored = await make_agent(cloud, tenant, provider, credentials_key_arn=KEY)

    turn = await made.turn()

    assert TOKEN not in stored
    assert "k1l2m3n4o5" not in stored
    assert turn.output_message.content == "3"
    assert [config.get("authorization") for config in provider.configs] == [TOKEN, TOKEN]
    assert provider.endpoints == ["https://shop.example/mcp?key=k1l2m3n4o5"] * 2
    shown = (await made.agents.get(made.agent_id)).model_dump_json()
    assert "sealed" not in shown
    assert TOKEN not in shown


async def test_without_a_key_the_server_of_an_agent_is_stored_as_it_is(cloud: Cloud, tenant: str) -> None:
    made, stored = await make_agent(cloud, tenant, RecordingToolProvider())

    assert TOKEN in stored
    assert TOKEN not in (await made.agents.get(made.agent_id)).model_dump_json()


async def test_encrypted_credentials_from_a_caller_are_dropped() -> None:
    body = {"model": "m", "instructions": "", "toolgroups": [inline() | {"sealed": "x"}]}

    [group] = NewAgentConfig.model_validate(body).toolgroups

    assert isinstance(group, AgentToolGroupWithArgs)
    assert group.sealed is None


async def test_tools_with_names_like_keys_still_wait_for_approval(cloud: Cloud, tenant: str, kms: KmsServer) -> None:
    name, provider = "deleteRecords20261129A1", RecordingToolProvider()
    provider.tool_name = name
    made = TurnFixture(cloud.store, tenant, script(called(name)), providers={MCP: provider}, credentials_key_arn=KEY)
    asking = {"always": {"tool_names": [name]}}
    await made.open(toolgroups=[inline(require_approval=asking)])

    assert (await made.turn()).pending_approvals == ["c0"]
