"""Toolgroups in the registry, and calls of tools outside a turn."""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.script_model import said, script
from tests.services.turn_fixture import TurnFixture
from tests.store.conftest import Cloud

from stint.caller import set_principal
from stint.domain.content import URL
from stint.domain.errors import Conflict, Forbidden, InvalidRequest, NotFound, ToolUnauthorized, ToolUnavailable
from stint.domain.inference import ToolSignature
from stint.domain.llama_stack.registrations import ModelRegisterRequest, ToolGroupRegisterRequest
from stint.domain.principals import ANONYMOUS
from stint.services.registry.toolgroups import Toolgroups
from stint.tools.port import Invocation, Toolgroup, ToolOutcome

LOCAL, REMOTE = "lambda-function", "remote-execution"


@dataclass
class FakeTools:
    """A provider whose toolgroups have the tools that their registration names.

    A remote one knows of a toolgroup only what `known` says; `failures` are what its servers answer.
    """

    remote: bool = False
    known: set[str] = field(default_factory=set)
    failures: dict[str, Exception] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    async def check(self, toolgroup: Toolgroup, /) -> None:
        if "refused" in toolgroup.config:
            raise InvalidRequest("This cannot be used.", param="args")

    def known_tools(self, toolgroup: Toolgroup, _: dict[str, Any], /) -> list[ToolSignature] | None:
        if self.remote and toolgroup.toolgroup_id not in self.known:
            return None
        return [ToolSignature(name, "", {"type": "object"}) for name in toolgroup.config.get("tools", [])]

    async def list_tools(self, toolgroup: Toolgroup, _: dict[str, Any], /) -> list[ToolSignature]:
        self.asked.append(toolgroup.toolgroup_id)
        if failure := self.failures.get(toolgroup.toolgroup_id):
            raise failure
        return [ToolSignature(name, "", {"type": "object"}) for name in toolgroup.config.get("tools", [])]

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        if failure := self.failures.get(toolgroup.toolgroup_id):
            raise failure
        return ToolOutcome(content=f"{toolgroup.toolgroup_id} {invocation.tool_name}")


@dataclass
class RegistryFixture:
    turn_fixture: TurnFixture
    remote: FakeTools

    @property
    def toolgroups(self) -> Toolgroups:
        return self.turn_fixture.services.toolgroups

    async def register(self, name: str, *tools: str, provider_id: str = REMOTE, **args: Any) -> None:
        args = {"tools": tools, **args}
        request = ToolGroupRegisterRequest(toolgroup_id=name, provider_id=provider_id, args=args)
        await self.toolgroups.register(request)

    async def run(self, name: str) -> Any:
        return (await self.toolgroups.invoke(name, {}, {})).content


@pytest.fixture
def place(cloud: Cloud, tenant: str) -> RegistryFixture:
    local, remote = FakeTools(), FakeTools(remote=True)
    providers = {LOCAL: local, REMOTE: remote, "tavily-search": local, "wolfram-alpha": local}
    return RegistryFixture(TurnFixture(cloud.store, tenant, script(said()), providers=providers), remote)


async def test_what_needs_no_server_is_found_without_asking_one(place: RegistryFixture) -> None:
    await place.register("far", "other")
    await place.register("near", "add", provider_id=LOCAL)

    assert await place.run("add") == "near add"
    assert (await place.toolgroups.tool("add", {})).toolgroup_id == "near"
    assert place.remote.asked == []


async def test_what_is_known_of_a_server_is_found_without_asking_another(place: RegistryFixture) -> None:
    await place.register("one", "add")
    await place.register("two", "sub")
    place.remote.known = {"two"}

    assert await place.run("sub") == "two sub"
    assert place.remote.asked == []
    assert await place.run("add") == "one add"
    assert place.remote.asked == ["one"]


async def test_a_tool_of_a_server_that_is_away_is_told_as_such(place: RegistryFixture) -> None:
    await place.register("away", "add")
    place.remote.failures["away"] = ToolUnavailable("the server cannot be reached")

    with pytest.raises(ToolUnavailable, match=r"Toolgroup 'away': the server cannot be reached"):
        await place.run("add")
    place.remote.known = {"away"}
    with pytest.raises(ToolUnavailable, match=r"^Toolgroup 'away': the server cannot be reached$"):
        await place.run("add")
    assert [tool.identifier for tool in (await place.toolgroups.tools_of(None, {})).data] == ["knowledge_search"]


async def test_a_server_that_is_away_hides_no_tool_of_another(place: RegistryFixture) -> None:
    await place.register("away", "add")
    await place.register("here", "sub")
    place.remote.failures["away"] = ToolUnavailable("the server cannot be reached")

    assert await place.run("sub") == "here sub"
    assert [tool.identifier for tool in (await place.toolgroups.tools_of(None, {})).data] == ["knowledge_search", "sub"]


async def test_a_tool_that_may_be_behind_credentials_asks_for_them(place: RegistryFixture) -> None:
    await place.register("private", "add")
    place.remote.failures["private"] = ToolUnauthorized("the server wants credentials")

    with pytest.raises(ToolUnauthorized, match=r"'private': the server wants credentials"):
        await place.run("add")


async def test_a_tool_that_is_nowhere_is_not_found(place: RegistryFixture) -> None:
    await place.register("here", "sub")

    with pytest.raises(NotFound):
        await place.run("add")


async def test_a_tool_of_several_toolgroups_is_run_by_its_whole_name(place: RegistryFixture) -> None:
    await place.register("one", "add")
    await place.register("two", "add")

    with pytest.raises(InvalidRequest, match=r"Use 'one/add' or 'two/add'\.") as refused:
        await place.run("add")

    assert refused.value.code == "ambiguous_tool"
    assert await place.run("two/add") == "two add"
    with pytest.raises(NotFound):
        await place.run("two/sub")


async def test_a_server_that_hangs_is_named(place: RegistryFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(*_: Any) -> list[ToolSignature]:
        await asyncio.sleep(60)
        return []

    monkeypatch.setattr("stint.services.registry.toolgroups.LIST_SECONDS", 0.05)
    await place.register("slow", "add")
    place.remote.list_tools = hang  # type: ignore[method-assign]  # from now on

    with pytest.raises(ToolUnavailable, match=r"'slow': It did not respond within 0\.05 s"):
        await place.run("add")


async def test_a_registration_hides_a_configured_toolgroup_until_it_is_unregistered(
    place: RegistryFixture,
) -> None:
    set_principal(ANONYMOUS)
    name = "builtin::websearch"
    before = await place.toolgroups.get(name)

    await place.register(name, "search", provider_id=LOCAL)

    assert (await place.toolgroups.get(name)).provider_id == LOCAL
    assert [group.identifier for group in await place.toolgroups.list()].count(name) == 1
    with pytest.raises(Conflict):
        await place.register(name, "another", provider_id=LOCAL)
    await place.toolgroups.unregister(name)
    assert await place.toolgroups.get(name) == before
    await place.toolgroups.unregister(name)
    with pytest.raises(NotFound):
        await place.toolgroups.get(name)


async def test_only_an_admin_overrides_or_removes_a_configured_toolgroup(place: RegistryFixture) -> None:
    set_principal(replace(ANONYMOUS, scopes=frozenset({"use", "registry:write", "users:act"})))

    await place.register("own", "search", provider_id=LOCAL)
    await place.toolgroups.unregister("own")
    with pytest.raises(Forbidden, match="'admin'"):
        await place.register("builtin::websearch", "search", provider_id=LOCAL)
    with pytest.raises(Forbidden, match="'admin'"):
        await place.toolgroups.unregister("builtin::websearch")


async def test_only_an_admin_restores_a_configured_toolgroup(place: RegistryFixture) -> None:
    set_principal(ANONYMOUS)
    await place.register("builtin::websearch", "search", provider_id=LOCAL)
    set_principal(replace(ANONYMOUS, scopes=frozenset({"use", "registry:write", "users:act"})))

    with pytest.raises(Forbidden, match="'admin'"):
        await place.toolgroups.unregister("builtin::websearch")

    assert (await place.toolgroups.get("builtin::websearch")).provider_id == LOCAL


async def test_a_configured_model_is_not_replaced(place: RegistryFixture) -> None:
    registry = place.turn_fixture.services.registry
    configured, *_ = (await registry.catalogue()).models
    request = ModelRegisterRequest(model_id=configured, provider_model_id="other", provider_id="scripted")

    with pytest.raises(Conflict) as refused:
        await registry.register_model(request)

    assert refused.value.code == "identifier_taken"


async def test_what_a_provider_refuses_is_not_registered(place: RegistryFixture) -> None:
    with pytest.raises(InvalidRequest, match="cannot be used"):
        await place.register("bad", "add", refused=True)

    assert "bad" not in [group.identifier for group in await place.toolgroups.list()]


@pytest.mark.parametrize("provider_id", [LOCAL, REMOTE])
@pytest.mark.parametrize("uri", ["http://169.254.169.254/mcp", "http://127.0.0.1:9/mcp", "file:///etc/passwd"])
async def test_an_endpoint_that_may_not_be_called_is_refused_under_any_provider(
    place: RegistryFixture, provider_id: str, uri: str
) -> None:
    request = ToolGroupRegisterRequest(
        toolgroup_id="g", provider_id=provider_id, mcp_endpoint=URL(uri=uri), args={"tools": []}
    )

    with pytest.raises(InvalidRequest, match="mcp_endpoint") as refused:
        await place.toolgroups.register(request)

    assert (refused.value.code, refused.value.param) == ("url_not_allowed", "mcp_endpoint")


async def test_the_tools_at_an_endpoint_that_may_not_be_called_are_not_listed(place: RegistryFixture) -> None:
    with pytest.raises(InvalidRequest) as refused:
        await place.toolgroups.tools_of(None, {}, "http://169.254.169.254/mcp")

    assert refused.value.param == "mcp_endpoint"


async def test_a_registration_that_is_valid_no_more_hides_no_other_and_is_named_in_the_log(
    place: RegistryFixture, cloud: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    await place.register("good", "add", provider_id=LOCAL)
    broken = URL(uri="https://secret.example/?token=s3cret")
    for kind in ("tool_group", "shield", "model"):
        await cloud.store.registrations.create(place.turn_fixture.tenant, kind, "broken", broken)

    with caplog.at_level(logging.ERROR):
        catalogue = await place.turn_fixture.services.registry.catalogue(fresh=True)

    assert "good" in catalogue.toolgroups
    assert "broken" not in {**catalogue.toolgroups, **catalogue.shields, **catalogue.models}
    logged = [vars(record) for record in caplog.records]
    assert [(entry["kind"], entry["identifier"]) for entry in logged] == [
        ("model", "broken"),
        ("shield", "broken"),
        ("tool_group", "broken"),
    ]
    assert "s3cret" not in repr(logged)


async def test_credentials_in_args_and_urls_are_in_no_answer(place: RegistryFixture) -> None:
    secret = "s3cret-value"
    request = ToolGroupRegisterRequest(
        toolgroup_id="g",
        provider_id=LOCAL,
        mcp_endpoint=URL(uri=f"https://93.184.216.34/sse?api_key={secret}"),
        args={"tools": ["add"], "api_key": secret, "url": f"https://x.example/?token={secret}", "max_results": 3},
    )

    answers = [await place.toolgroups.register(request), await place.toolgroups.get("g")]
    answers += await place.toolgroups.list()

    assert secret not in "".join(answer.model_dump_json() for answer in answers)
    assert answers[1].args == {
        "tools": ["add"],
        "api_key": "********",
        "url": "https://x.example/?token=********",
        "max_results": 3,
    }
    assert answers[1].mcp_endpoint == URL(uri="https://93.184.216.34/sse?api_key=********")


@pytest.mark.parametrize("name", ["builtin::rag", "builtin::rag/knowledge_search"])
async def test_the_search_in_vector_dbs_is_listed_like_other_tools(place: RegistryFixture, name: str) -> None:
    [search] = (await place.toolgroups.tools_of(name, {})).data

    assert (search.identifier, search.toolgroup_id) == ("knowledge_search", "builtin::rag")
    assert [(parameter.name, parameter.required) for parameter in search.parameters] == [("query", True)]
    assert "knowledge_search" in [tool.identifier for tool in (await place.toolgroups.tools_of(None, {})).data]
    with pytest.raises(NotFound):
        await place.toolgroups.tools_of("builtin::rag/nosuch", {})


async def test_the_search_in_vector_dbs_runs_outside_of_a_turn(place: RegistryFixture) -> None:
    outcome = await place.toolgroups.invoke("knowledge_search", {"query": "x"}, {})

    assert "No vector DBs were provided" in (outcome.error_message or "")


async def test_a_registered_search_takes_the_place_of_the_built_in_one(place: RegistryFixture) -> None:
    set_principal(ANONYMOUS)
    await place.register("builtin::rag", "knowledge_search", provider_id=LOCAL)
    turn_fixture = await place.turn_fixture.open(toolgroups=["builtin::rag/knowledge_search"])

    assert (await turn_fixture.turn()).status == "completed"
    assert await place.run("knowledge_search") == "builtin::rag knowledge_search"


async def test_an_endpoint_that_is_not_registered_can_name_no_secret(place: RegistryFixture) -> None:
    secret = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:stint/acme/crm"

    with pytest.raises(InvalidRequest, match="Only registered toolgroups") as refused:
        await place.toolgroups.tools_of(None, {}, f"https://evil.example/mcp?key={secret}")

    assert refused.value.param == "mcp_endpoint"
