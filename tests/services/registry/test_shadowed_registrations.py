"""Registrations that are older than the rule of names, or than the configuration, and those that look alike."""

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.services.registry.test_registrations_of_tenants import KIND, FakeTools
from tests.services.turn_fixture import IdleQueue
from tests.store.conftest import Cloud

from stint.apis.agents import AgentsServices
from stint.bootstrap.adapters import Adapters
from stint.bootstrap.agents import compose, delete_agent_objects
from stint.caller import set_principal
from stint.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound
from stint.domain.llama_stack.registrations import (
    ModelRegisterRequest,
    Owner,
    ShieldRegisterRequest,
    ToolGroupRegisterRequest,
)
from stint.domain.principals import ANONYMOUS, SCOPES
from stint.services.deletions import Deletions
from stint.services.registry.catalogue import model_of, shield_of, toolgroup_of
from stint.services.registry.registry import Registry
from stint.settings import Settings

CONFIGURED = {
    "toolgroups": [{"toolgroup_id": "crm", "provider_id": KIND, "args": {"tools": ["refund"]}}],
    "shields": [{"shield_id": "guard", "provider_id": "llama-guard", "provider_shield_id": "house"}],
    "models": [{"model_id": "house", "provider_model_id": "scripted/demo"}],
}


def act(*, admin: bool) -> None:
    scopes = frozenset(SCOPES) if admin else frozenset(SCOPES) - {"admin"}
    set_principal(replace(ANONYMOUS, scopes=scopes))


class Stack:
    """A stack whose configuration has CONFIGURED, and whose table may have any registration."""

    def __init__(self, cloud: Cloud, tenant: str) -> None:
        settings = Settings(default_model="scripted/demo", scripted_models=True, registry=json.dumps(CONFIGURED))
        adapters, queue = Adapters(settings, tool_providers={KIND: FakeTools()}), IdleQueue()
        deletions = Deletions(delete_agent_objects(cloud.store, queue.send), queue.send)
        self.services: AgentsServices = compose(tenant, adapters, cloud.store, deletions)
        self.store, self.tenant = cloud.store.registrations, tenant

    @property
    def registry(self) -> Registry:
        return self.services.registry

    async def store_toolgroup(self, name: str, *tools: str) -> None:
        """Store a toolgroup as an older version did."""
        request = ToolGroupRegisterRequest(toolgroup_id=name, provider_id=KIND, args={"tools": [*tools]})
        await self.store.create(self.tenant, "tool_group", name, toolgroup_of(request, Owner()))

    async def store_model(self, name: str, provider: str, resource: str, **fields: Any) -> None:
        model = model_of(ModelRegisterRequest(model_id=name, **fields), provider, resource)
        await self.store.create(self.tenant, "model", name, model)

    async def register(self, name: str, *tools: str) -> None:
        request = ToolGroupRegisterRequest(toolgroup_id=name, provider_id=KIND, args={"tools": [*tools]})
        await self.services.toolgroups.register(request)

    async def register_model(self, name: str, target: str | None = None, **fields: Any) -> None:
        request = ModelRegisterRequest(model_id=name, provider_model_id=target, **fields)
        await self.registry.register_model(request)

    async def tools_of(self, name: str) -> list[tuple[str, str]]:
        tools = await self.services.toolgroups.named_tools(name, {})
        return [(tool.toolgroup_id, tool.identifier) for tool in tools]


@pytest.fixture
def stack(cloud: Cloud, tenant: str) -> Stack:
    act(admin=False)
    return Stack(cloud, tenant)


@pytest.mark.parametrize("name", ["crm", "crm/refund", "crm/refund/more"])
async def test_a_configured_toolgroup_wins_over_an_older_registration(stack: Stack, name: str) -> None:
    await stack.store_toolgroup(name, "stolen")

    assert await stack.tools_of("crm") == await stack.tools_of("crm/refund") == [("crm", "refund")]
    assert [group.identifier for group in await stack.services.toolgroups.list()].count(name) == (name == "crm")
    assert (await stack.services.toolgroups.invoke("refund", {}, {})).content == "refund"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("house", "scripted/demo"), ("demo", "scripted/demo"), ("openai/gpt-5", "openai/gpt-5")],
)
async def test_what_the_configuration_means_by_a_model_wins_over_an_older_registration(
    stack: Stack, name: str, expected: str
) -> None:
    await stack.store_model(name, "bedrock", "stolen")
    await stack.store_model("openai/demo", "openai", "demo")

    assert stack.registry.router.names_provider("openai/gpt-5")
    assert await stack.registry.route(name) == expected
    shown = [(each.identifier, each.provider_id) for each in await stack.registry.list_models()]
    assert (name, "bedrock") not in shown


async def test_a_model_that_is_registered_as_itself_is_used_as_both_types(stack: Stack) -> None:
    await stack.register_model("openai/both", model_type="embedding")
    await stack.register_model("openai/other")

    assert await stack.registry.route("openai/both") == "openai/both"
    assert {"openai/both", "openai/other"} <= {each.identifier for each in await stack.registry.list_models()}


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "openai/gpt-5", "target": "bedrock/x"},
        {"name": "demo", "target": "bedrock/x"},
        {"name": "openai/embedding", "model_type": "embedding", "metadata": {"embedding_dimension": 7}},
        {"name": "words-384", "model_type": "embedding", "metadata": {"embedding_dimension": 7}},
        {"name": "all-MiniLM-L6-v2", "target": "openai/mini", "model_type": "embedding"},
        {"name": "sentence-transformers/x", "target": "openai/mini", "model_type": "embedding"},
        {"name": "demo", "model_type": "embedding"},
    ],
)
async def test_only_an_admin_gives_the_name_of_a_model_another_meaning(stack: Stack, fields: dict[str, Any]) -> None:
    with pytest.raises(Forbidden, match="scope 'admin'") as refused:
        await stack.register_model(**fields)
    assert refused.value.code == "insufficient_scope"

    act(admin=True)
    await stack.register_model(**fields)

    stored = (await stack.registry.catalogue(fresh=True)).models[fields["name"]]
    assert stored.override is True
    act(admin=False)
    await stack.register_model(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "demo"},
        {"name": "openai/gpt-5"},
        {"name": "demo", "target": "scripted/demo"},
        {"name": "all-MiniLM-L6-v2", "model_type": "embedding"},
        {
            "name": "all-MiniLM-L6-v2",
            "provider_id": "sentence-transformers",
            "model_type": "embedding",
            "metadata": {"embedding_dimension": 384},
        },
        {"name": "hashed/words-64", "model_type": "embedding"},
    ],
)
async def test_anybody_registers_a_name_for_what_it_means(stack: Stack, fields: dict[str, Any]) -> None:
    before = await stack.registry.find_models(fields["name"])

    await stack.register_model(**fields)

    after = await stack.registry.find_models(fields["name"])
    names = stack.registry.names
    assert [names.target_of(each) for each in before] in ([], [names.target_of(each) for each in after])
    assert [each.override for each in after] == [None]


async def test_a_registration_makes_no_short_id_ambiguous(stack: Stack) -> None:
    await stack.register_model("openai/demo")
    await stack.register_model("openai/fast")

    with pytest.raises(Forbidden, match="short id 'fast' of 'openai/fast'"):
        await stack.register_model("bedrock/fast")

    assert await stack.registry.route("demo") == "scripted/demo"
    assert await stack.registry.route("fast") == "openai/fast"


@pytest.mark.parametrize("name", ["builtin::new", "builtin::websearch", "crm/refund", "own/tool"])
async def test_only_an_admin_registers_what_belongs_to_a_toolgroup_or_the_configuration(
    stack: Stack, name: str
) -> None:
    await stack.register("own", "tool")
    with pytest.raises(Forbidden, match="scope 'admin'"):
        await stack.register(name, "stolen")

    act(admin=True)
    await stack.register(name, "mine")

    assert await stack.tools_of(name) == [(name, "mine")]
    assert (await stack.services.toolgroups.get(name)).override is (None if name == "builtin::new" else True)


async def test_a_configured_toolgroup_may_be_registered_as_it_is(stack: Stack) -> None:
    await stack.register("crm", "refund")

    assert await stack.store.read(stack.tenant) == {}


async def test_an_older_override_is_marked_when_an_admin_registers_it_again(stack: Stack) -> None:
    await stack.store_toolgroup("crm", "mine")
    assert await stack.tools_of("crm") == [("crm", "refund")]
    with pytest.raises(Forbidden):
        await stack.register("crm", "mine")

    act(admin=True)
    await stack.register("crm", "mine")

    assert await stack.tools_of("crm") == [("crm", "mine")]
    with pytest.raises(Conflict):
        await stack.register("crm", "other")


@pytest.mark.parametrize("admin", [False, True])
async def test_what_was_a_conflict_stays_one(stack: Stack, *, admin: bool) -> None:
    await stack.services.shields.register(ShieldRegisterRequest(shield_id="own", params={"phrases": ["x"]}))
    act(admin=admin)

    for name in ("guard", "own"):
        with pytest.raises(Conflict):
            await stack.services.shields.register(ShieldRegisterRequest(shield_id=name, params={"phrases": ["y"]}))
    with pytest.raises(Conflict):
        await stack.register_model("house", "bedrock/x")


async def test_a_tool_of_a_configured_toolgroup_runs_rather_than_one_of_a_registration(stack: Stack) -> None:
    await stack.register("aaa", "refund", "other")

    assert (await stack.services.toolgroups.tool("refund", {})).toolgroup_id == "crm"
    assert (await stack.services.toolgroups.tool("other", {})).toolgroup_id == "aaa"
    assert (await stack.services.toolgroups.tool("aaa/refund", {})).toolgroup_id == "aaa"


async def test_shields_ask_the_models_of_the_configuration(stack: Stack) -> None:
    act(admin=True)
    await stack.register_model("demo", "bedrock/stolen")
    await stack.services.shields.register(
        ShieldRegisterRequest(shield_id="own", provider_id="llama-guard", provider_shield_id="demo")
    )

    bound = await stack.services.shields.find(["guard", "own"], "input_shields")

    assert [each.shield.provider_shield_id for each in bound] == ["scripted/demo"] * 2


async def test_a_shield_keeps_its_model_when_a_name_moves(stack: Stack) -> None:
    await stack.register_model("mine", "scripted/demo")
    request = ShieldRegisterRequest(shield_id="own", provider_id="llama-guard", provider_shield_id="mine")
    await stack.services.shields.register(request)
    await stack.services.shields.register(request)
    await stack.registry.unregister("model", "mine")
    await stack.register_model("mine", "bedrock/dear")

    [bound] = await stack.services.shields.find(["own"], "input_shields")

    assert bound.shield.provider_shield_id == "scripted/demo"
    with pytest.raises(Conflict):
        await stack.services.shields.register(request)


async def test_a_shield_of_an_older_version_is_used_if_its_model_is_configured(stack: Stack) -> None:
    await stack.register_model("mine", "scripted/demo")
    for name, model in (("kept", "house"), ("lost", "mine")):
        request = ShieldRegisterRequest(shield_id=name, provider_id="llama-guard", provider_shield_id=model)
        await stack.store.create(stack.tenant, "shield", name, shield_of(request, Owner()))

    [kept] = await stack.services.shields.find(["kept"], "input_shields")
    with pytest.raises(InvalidRequest, match="'mine' does not exist"):
        await stack.services.shields.find(["lost"], "input_shields")
    request = ShieldRegisterRequest(shield_id="kept", provider_id="llama-guard", provider_shield_id="house")
    await stack.services.shields.register(request)

    assert kept.shield.provider_shield_id == "scripted/demo"


async def test_an_override_is_unregistered_by_an_admin_only(stack: Stack) -> None:
    act(admin=True)
    await stack.register("crm/refund", "mine")
    act(admin=False)
    with pytest.raises(Forbidden):
        await stack.services.toolgroups.unregister("crm/refund")

    act(admin=True)
    await stack.services.toolgroups.unregister("crm/refund")

    assert await stack.tools_of("crm/refund") == [("crm", "refund")]


async def test_a_shadowed_registration_can_be_unregistered_by_anybody(stack: Stack) -> None:
    await stack.store_toolgroup("crm/refund", "stolen")
    await stack.store_model("demo", "bedrock", "stolen")

    await stack.services.toolgroups.unregister("crm/refund")
    await stack.registry.unregister("model", "demo")

    assert await stack.store.read(stack.tenant) == {}
    with pytest.raises(NotFound):
        await stack.services.toolgroups.unregister("crm/refund")


@pytest.mark.parametrize(
    "name", ["CRM", "crm ", " crm", "c\u200brm", "cr\u034fm", "crm\u3164", "\uff43rm", "crm /x", "crm/x\u200b"]
)
async def test_a_name_that_looks_like_a_configured_one_is_refused(stack: Stack, name: str) -> None:
    act(admin=True)

    with pytest.raises(Conflict, match="differs from 'crm"):
        await stack.register(name, "stolen")


async def test_a_name_that_looks_like_a_registered_one_is_refused(stack: Stack) -> None:
    await stack.register("own", "add")
    await stack.register_model("mine", "scripted/demo")

    with pytest.raises(Conflict, match="'own'"):
        await stack.register("Own", "stolen")
    with pytest.raises(Conflict, match="'mine'"):
        await stack.register_model("mine ", "scripted/demo")
