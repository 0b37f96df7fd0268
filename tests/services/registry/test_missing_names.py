"""The names of a new agent that its turns would not find, and what it costs to look for them."""

from dataclasses import replace
from typing import Any

import pytest
from tests.script_model import script
from tests.services.registry.test_shadowed_registrations import act
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.apis.agents import AgentsServices
from stint.caller import ModelAccess, set_principal
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.registrations import ModelRegisterRequest, ShieldRegisterRequest, ToolGroupRegisterRequest
from stint.domain.principals import ANONYMOUS
from stint.services.agents.missing_names import explain_missing_names


@pytest.fixture
async def services(cloud: Cloud, tenant: str) -> AgentsServices:
    return TurnFixture(cloud.store, tenant, script()).services


async def explain(services: AgentsServices, **config: Any) -> list[str]:
    config = {"model": "scripted/demo", "instructions": ""} | config
    return await explain_missing_names(AgentConfig(**config), services.toolgroups.tools)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"model": "demo"},
        {"model": "test/any"},
        {"toolgroups": ["builtin::rag", "builtin::rag/knowledge_search", {"name": "builtin::rag", "args": {}}]},
        {"toolgroups": [{"name": "builtin::remote_execution", "args": {}}]},
    ],
)
async def test_configured_names_are_found_without_a_read(
    services: AgentsServices, cloud: Cloud, config: dict[str, Any]
) -> None:
    cloud.forget()

    assert await explain(services, **config) == []
    assert cloud.calls.total() == 0


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model": "nope"}, "Model 'nope' does not exist. GET /v1/models lists the models."),
        ({"model": "bedrock/x"}, "Model 'bedrock/x' needs the provider 'bedrock', which is not configured"),
        ({"model": ""}, "Model '' does not exist."),
        ({"toolgroups": ["nope"]}, "Toolgroup 'nope' is not registered. GET /v1/toolgroups lists"),
        ({"toolgroups": [{"name": "a/b", "args": {}}]}, "Toolgroup 'a/b' is not registered."),
        ({"toolgroups": ["mcp::photogen"]}, "'mcp::photogen' is not supported: use builtin::photogen"),
        (
            {"toolgroups": ["builtin::rag/knowledge_serch"]},
            "Toolgroup 'builtin::rag' has no tool 'knowledge_serch'. Its",
        ),
        ({"toolgroups": [{"name": "builtin::rag/", "args": {}}]}, "Toolgroup 'builtin::rag' has no tool ''. Its"),
        ({"input_shields": ["nope", "nope"]}, "Shield 'nope' is not registered. GET /v1/shields lists"),
        ({"tool_shields": {"t": {"output_shields": ["nope"]}}}, "Shield 'nope' is not registered."),
    ],
)
async def test_a_name_that_does_not_exist_is_explained_after_one_query(
    services: AgentsServices, cloud: Cloud, config: dict[str, Any], message: str
) -> None:
    cloud.forget()

    [found] = await explain(services, **config)

    assert found.startswith(message)
    assert dict(cloud.calls) == {"Query": 1}
    assert cloud.units.total() == 1


async def test_what_another_process_has_registered_is_found(
    services: AgentsServices, cloud: Cloud, tenant: str
) -> None:
    other = TurnFixture(cloud.store, tenant, script()).services
    await services.registry.catalogue()
    await other.registry.register_model(ModelRegisterRequest(model_id="own", provider_model_id="scripted/demo"))
    await other.shields.register(ShieldRegisterRequest(shield_id="no-cards", params={"phrases": ["card"]}))
    await other.toolgroups.register(ToolGroupRegisterRequest(toolgroup_id="search", provider_id="brave-search"))
    names: dict[str, Any] = {"model": "own", "toolgroups": ["search"], "input_shields": ["no-cards"]}
    cloud.forget()

    assert await explain(services, **names) == []
    assert await explain(services, **names) == []
    assert dict(cloud.calls) == {"Query": 1}  # the second time, this process knows them


async def test_the_tools_of_a_registration_are_known_and_those_of_a_server_are_not(
    services: AgentsServices, cloud: Cloud
) -> None:
    act(admin=True)
    defined = {"name": "get_time", "function": "clock"}
    requests: list[dict[str, Any]] = [
        {"toolgroup_id": "clock", "provider_id": "lambda-function", "args": {"tools": [defined]}},
        {"toolgroup_id": "search", "provider_id": "brave-search"},
        {
            "toolgroup_id": "wiki",
            "provider_id": "model-context-protocol",
            "mcp_endpoint": {"uri": "https://1.1.1.1/mcp"},
        },
    ]
    for each in requests:
        request = ToolGroupRegisterRequest(**each)
        await services.toolgroups.register(request)
    await services.registry.catalogue()
    found = ["clock/get_time", "search/web_search", "search/brave_search", "wiki/nope"]
    cloud.forget()

    assert await explain(services, toolgroups=found) == []
    assert cloud.calls.total() == 0
    assert await explain(services, toolgroups=["clock/get_tiem", "search/web_serch"]) == [
        "Toolgroup 'clock' has no tool 'get_tiem'. Its tools are: ['get_time']",
        "Toolgroup 'search' has no tool 'web_serch'. Its tools are: ['web_search']",
    ]


async def test_an_unregistered_toolgroup_is_named(services: AgentsServices) -> None:
    act(admin=True)
    await services.toolgroups.unregister("builtin::rag")
    await services.registry.catalogue()

    assert await explain(services, toolgroups=["builtin::rag"]) == [
        "Toolgroup 'builtin::rag' is not registered. GET /v1/toolgroups lists the registered ones."
    ]


async def test_a_caller_with_limits_is_told_no_other_ids(services: AgentsServices) -> None:
    act(admin=True)
    for name in ("openai/secret", "bedrock/secret"):
        await services.registry.register_model(ModelRegisterRequest(model_id=name, provider_model_id="scripted/x"))
    set_principal(replace(ANONYMOUS, models=("scripted/demo",)))
    limited = [await explain(services, model=model) for model in ("secret", "nope", "bedrock/")]
    set_principal(ANONYMOUS)
    services.registry.access = ModelAccess(("scripted/demo",))

    limited += [await explain(services, model="nope")]

    assert [len(each) for each in limited] == [1, 1, 1, 1]
    assert [each for messages in limited for each in messages if "/secret" in each] == []
