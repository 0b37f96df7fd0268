"""Registrations of an admin, which nobody else takes over, whichever came first."""

from typing import Any

import pytest
from tests.services.registry.test_registrations_of_tenants import KIND
from tests.services.registry.test_shadowed_registrations import Stack, act
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, Forbidden
from stint.domain.llama_stack.registrations import Owner, ShieldRegisterRequest, ToolGroupRegisterRequest
from stint.services.registry.catalogue import shield_of, toolgroup_of
from stint.services.registry.shadowed import ShadowedRegistrations
from stint.store.registrations import Kind

NAMES: dict[Kind, str] = {"tool_group": "own", "shield": "words", "model": "mine"}


@pytest.fixture
def stack(cloud: Cloud, tenant: str) -> Stack:
    act(admin=False)
    return Stack(cloud, tenant)


async def register(stack: Stack, kind: Kind, *, other: bool = False) -> None:
    """Register something, or something else under the same name."""
    if kind == "tool_group":
        await stack.register("own", "stolen" if other else "add")
    elif kind == "shield":
        phrase = "pear" if other else "plum"
        request = ShieldRegisterRequest(shield_id="words", params={"phrases": [phrase]})
        await stack.services.shields.register(request)
    else:
        await stack.register_model("mine", "openai/stolen" if other else "scripted/demo")


def shadowed(stack: Stack) -> ShadowedRegistrations:
    return ShadowedRegistrations(stack.tenant, stack.store, stack.registry.names, frozenset())


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("repeated", [False, True])
async def test_what_an_admin_has_registered_is_unregistered_by_an_admin_only(
    stack: Stack, kind: Kind, *, repeated: bool
) -> None:
    """`repeated`: somebody else has registered the same before."""
    if repeated:
        await register(stack, kind)
    act(admin=True)
    await register(stack, kind)
    act(admin=False)
    await register(stack, kind)
    before = await stack.store.read(stack.tenant)

    with pytest.raises(Forbidden, match=f"An admin has registered '{NAMES[kind]}', so unregistering it needs") as error:
        await stack.registry.unregister(kind, NAMES[kind])
    with pytest.raises(Conflict):
        await register(stack, kind, other=True)

    assert (error.value.code, error.value.scope) == ("insufficient_scope", "admin")
    assert await stack.store.read(stack.tenant) == before
    act(admin=True)
    await stack.registry.unregister(kind, NAMES[kind])
    await register(stack, kind, other=True)


@pytest.mark.parametrize("kind", NAMES)
async def test_what_somebody_else_has_registered_is_unregistered_by_anybody(stack: Stack, kind: Kind) -> None:
    await register(stack, kind)

    await stack.registry.unregister(kind, NAMES[kind])

    await register(stack, kind, other=True)


async def test_a_registration_of_an_older_version_belongs_to_no_admin(stack: Stack) -> None:
    await stack.store_toolgroup("own", "add")
    request = ShieldRegisterRequest(shield_id="words", params={"phrases": ["plum"]})
    await stack.store.create(stack.tenant, "shield", "words", shield_of(request, Owner()))

    await stack.services.toolgroups.unregister("own")
    await stack.registry.unregister("shield", "words")

    assert await stack.store.read(stack.tenant) == {}


async def test_an_admin_takes_no_registration_that_was_replaced_meanwhile(
    stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stack.register("own", "add")
    act(admin=True)
    changes = await stack.registry.begin_change()
    thief = toolgroup_of(
        ToolGroupRegisterRequest(toolgroup_id="own", provider_id=KIND, args={"tools": ["stolen"]}), Owner()
    )
    await stack.services.toolgroups.unregister("own")
    await stack.store.create(stack.tenant, "tool_group", "own", thief)

    with pytest.raises(Conflict, match="registered anew meanwhile"):
        await changes.register("tool_group", changes.catalogue.toolgroups["own"])

    act(admin=False)
    await stack.services.toolgroups.unregister("own")


@pytest.mark.parametrize("admin_first", [False, True])
async def test_the_toolgroup_of_an_admin_wins_over_the_names_of_its_tools(stack: Stack, *, admin_first: bool) -> None:
    """Without the check of names, as when both are registered at the same moment."""
    admins = {"owner": Owner(attributes={"roles": ["admin"]})}
    for name in ("own", "own/add") if admin_first else ("own/add", "own"):
        tools = ["add"] if name == "own" else ["stolen"]
        request = ToolGroupRegisterRequest(toolgroup_id=name, provider_id=KIND, args={"tools": tools})
        group = toolgroup_of(request, Owner()).model_copy(update=admins if name == "own" else {})
        await stack.store.create(stack.tenant, "tool_group", name, group)

    assert await stack.tools_of("own/add") == await stack.tools_of("own") == [("own", "add")]
    assert "own/add" not in [each.identifier for each in await stack.services.toolgroups.list()]
    [found] = await shadowed(stack).list()
    assert (found.id, found.reason, found.can_be_kept) == ("own/add", "a tool of the registered toolgroup 'own'", True)
    await shadowed(stack).keep("toolgroup", "own/add")
    assert await stack.registry.catalogue(fresh=True)
    assert await stack.tools_of("own/add") == [("own/add", "stolen")]


async def test_an_admin_registers_a_toolgroup_although_the_name_of_its_tool_is_taken(stack: Stack) -> None:
    await stack.register("own/add/more", "stolen")
    await stack.register("other/add", "kept")
    with pytest.raises(Forbidden, match="is the toolgroup of 'own/add/more'"):
        await stack.register("own", "add")

    act(admin=True)
    await stack.register("own", "add")

    assert await stack.tools_of("own/add") == [("own", "add")]
    assert await stack.tools_of("other/add") == [("other/add", "kept")]


async def test_no_toolgroup_of_somebody_else_hides_a_name_that_an_admin_has_registered(stack: Stack) -> None:
    await stack.store_toolgroup("own", "stolen")
    act(admin=True)
    await stack.register("own/add", "mine")
    raw = (await stack.store.read(stack.tenant))["tool_group", "own/add"]
    await stack.services.toolgroups.unregister("own/add")
    group = toolgroup_of(
        ToolGroupRegisterRequest(toolgroup_id="own/add", provider_id=KIND, args={"tools": ["mine"]}),
        Owner(attributes={"roles": ["admin"]}),
    )
    assert b'"override":true' in raw
    await stack.store.create(stack.tenant, "tool_group", "own/add", group)

    assert await stack.tools_of("own/add") == [("own/add", "mine")]
    assert await shadowed(stack).list() == []


@pytest.mark.parametrize(
    "metadata",
    [{"note": "changed"}, {"embedding_dimension": 385}, {"llama_model": "other"}, {"embedding_dimension": None}],
)
async def test_metadata_that_a_name_has_not_gives_it_another_meaning(stack: Stack, metadata: dict[str, Any]) -> None:
    before = (await stack.registry.get_model("words-384")).metadata

    with pytest.raises(Forbidden, match="is the name of another model"):
        await stack.register_model("words-384", model_type="embedding", metadata=metadata)

    assert (await stack.registry.get_model("words-384")).metadata == before


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "hashed/words-64"])
@pytest.mark.parametrize("older", [False, True])
async def test_a_registration_without_metadata_removes_none(stack: Stack, name: str, *, older: bool) -> None:
    before = (await stack.registry.get_model(name)).metadata
    provider, _, resource = name.rpartition("/")
    fields = {"provider_id": provider or "sentence-transformers", "model_type": "embedding"}
    if older:
        await stack.store_model(name, fields["provider_id"], resource, model_type="embedding")
    await stack.register_model(name, **fields)
    await stack.register_model(name, **fields)

    assert before["embedding_dimension"] > 0
    assert (await stack.registry.get_model(name)).metadata == before


async def test_an_older_registration_with_other_metadata_has_no_effect(stack: Stack) -> None:
    before = (await stack.registry.get_model("words-384")).metadata
    await stack.store_model("words-384", "hashed", "words-384", model_type="embedding", metadata={"note": "changed"})

    assert (await stack.registry.get_model("words-384")).metadata == before
    assert [each.id for each in await shadowed(stack).list()] == ["words-384"]


async def test_a_model_of_october_2024_is_registered_for_what_it_means(stack: Stack) -> None:
    for name in ("demo", "scripted/demo"):
        await stack.register_model("demo", name, provider_id="scripted", metadata={"llama_model": name})
        await stack.registry.unregister("model", "demo")


async def test_the_short_id_of_another_model_is_registered_by_an_admin_only(stack: Stack) -> None:
    await stack.register_model("openai/fast")

    with pytest.raises(Forbidden, match="'fast' is the short id of another model"):
        await stack.register_model("fast", "bedrock/stolen")

    assert await stack.registry.route("fast") == "openai/fast"
    await stack.register_model("fast", "openai/fast")
