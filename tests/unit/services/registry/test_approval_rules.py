"""The rules that say which tools of a turn wait for approval."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from stint.domain.approvals import Approval, ToolgroupApproval
from stint.domain.content import URL
from stint.domain.errors import InvalidRequest
from stint.domain.inference import ToolSignature
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.llama_stack.registrations import ToolGroup
from stint.domain.tools import AgentToolGroupWithArgs, ServerWithVaults
from stint.loop.toolbox import ServerTool
from stint.services.agents.offered_vaults import offer_vaults
from stint.services.registry.selections import Selection, as_port, name_for_model
from stint.services.registry.tool_approvals import find_approvals, find_generators, read_rules
from stint.tools.port import ToolProvider

FUNCTIONS, ENDPOINTS = "lambda-function", "remote-execution"
NO_PROVIDER: Any = None


def approval_of(value: Any) -> Approval | None:
    return None if value is None else ToolgroupApproval(require_approval=value).require_approval


class Turn:
    """The toolgroups that an agent and a turn name, and the tools that they list."""

    def __init__(self) -> None:
        self.selections: list[Selection] = []
        self.listed: dict[str, list[ToolSignature]] = {}
        self.server: dict[str, ServerTool] = {}

    def add(
        self, group: ToolGroup, *tools: str, approval: Any = None, only: str | None = None, args: Any = None
    ) -> "Turn":
        provider: ToolProvider = NO_PROVIDER
        self.selections.append(Selection(group, only, args or {}, None, approval_of(approval)))
        self.listed[group.identifier] = [ToolSignature(name, "", {"type": "object"}) for name in tools]
        for each in self.listed[group.identifier]:
            shown = name_for_model(group.provider_id, each.name)
            if only in (None, each.name, shown):
                signature = ToolSignature(shown, "", {"type": "object"})
                alias = each.name if shown != each.name else None
                self.server[shown] = ServerTool(signature, as_port(group), provider, args or {}, alias)
        return self

    def asking(self, *of_all: Any) -> set[str]:
        general = [approval for each in of_all if (approval := approval_of(each)) is not None]
        generators = asyncio.run(find_generators(self.server, self.find_known))
        rules = read_rules(general, self.selections, self.listed, self.server)
        return {*find_approvals(self.server, rules, generators)}

    async def find_known(self, name: str, args: Mapping[str, Any]) -> list[ServerTool]:
        return [*OTHER.server.values()] if name == "other" else []


def group(name: str = "own", provider: str = FUNCTIONS, url: str | None = None, **args: Any) -> ToolGroup:
    endpoint = URL(uri=url) if url else None
    return ToolGroup(
        identifier=name, provider_resource_id=name, provider_id=provider, mcp_endpoint=endpoint, args=args or None
    )


def functions(name: str, **tools: str) -> ToolGroup:
    return group(name, tools=[{"name": tool, "function": function} for tool, function in tools.items()])


def endpoints(name: str, **tools: str) -> ToolGroup:
    calls = {tool: call.partition(" ")[::2] for tool, call in tools.items()}
    return group(
        name, ENDPOINTS, tools=[{"name": tool, "method": method, "url": url} for tool, (method, url) in calls.items()]
    )


OTHER = Turn().add(functions("other", settle="pay-function:live"), "settle")
SEARCH = group("builtin::websearch", "tavily-search")
PAY = functions("bank", pay="pay-function", look="look-function")


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        (None, set()),
        ("never", set()),
        ("always", {"pay", "look"}),
        ({"always": {"tool_names": ["pay"]}}, {"pay"}),
        ({"never": {"tool_names": ["look"]}}, {"pay"}),
        ({"always": {"tool_names": ["pay"]}, "never": {"tool_names": ["look"]}}, {"pay"}),
    ],
)
def test_calls_of_a_toolgroup_wait_as_it_says(approval: Any, expected: set[str]) -> None:
    assert Turn().add(PAY, "pay", "look", approval=approval).asking() == expected
    assert Turn().add(PAY, "pay", "look").asking(approval) == expected


def test_only_the_named_tool_of_a_toolgroup_waits() -> None:
    turn = Turn().add(PAY, "pay", "look").add(PAY, "pay", "look", only="pay", approval="always")

    assert turn.asking() == {"pay"}


@pytest.mark.parametrize("later", ["never", None, {"never": {}}, {"always": {"tool_names": []}}])
@pytest.mark.parametrize("only", [None, "web_search", "brave_search"])
def test_no_later_entry_removes_an_approval(later: Any, only: str | None) -> None:
    asked = Turn().add(SEARCH, "web_search", approval="always")

    asked.add(SEARCH, "web_search", only=only, approval=later, args={"allowed_domains": ["a.example"]})

    assert asked.asking("never") == {"brave_search"}


@pytest.mark.parametrize("name", ["web_search", "brave_search"])
def test_a_tool_is_named_by_either_of_its_names(name: str) -> None:
    asked = Turn().add(SEARCH, "web_search", approval={"always": {"tool_names": [name]}})
    spared = Turn().add(SEARCH, "web_search", approval={"never": {"tool_names": [name]}})

    assert (asked.asking(), spared.asking()) == ({"brave_search"}, set())


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example/mcp",
        "http://SHOP.example./mcp/",
        "https://shop.example:443/a/../%6dcp?key=1#x",
        "https://user@shop.example/MCP",
        "https://\uff53hop\u3002example/mcp",
    ],
)
def test_an_mcp_server_is_known_by_its_address(url: str) -> None:
    """The toolgroup with the approval lists nothing, because its server did not answer."""
    silent = group("mcp::shop", "model-context-protocol", "https://shop.example/mcp", require_approval="always")
    other = group("builtin::mcp/x", "model-context-protocol", url)

    assert Turn().add(silent).add(other, "cancel").asking() == {"cancel"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("b\u00fccher.example", "xn--bcher-kva.example"),
        ("192.0.2.1", "3221225985"),
        ("[2001:db8::1]", "[2001:DB8:0::1]"),
    ],
)
def test_an_address_is_the_same_in_every_notation(one: str, other: str) -> None:
    own = group("mcp::shop", "model-context-protocol", f"https://{one}/mcp", require_approval="always")
    same = group("builtin::mcp/x", "model-context-protocol", f"https://{other}/mcp")

    assert Turn().add(own).add(same, "cancel").asking() == {"cancel"}


@pytest.mark.parametrize(
    "url", ["https://shop.example/mcp2", "https://shop.example:8443/mcp", "https://a.example/mcp", "http://x:99999/mcp"]
)
def test_another_mcp_server_is_not_asked_for(url: str) -> None:
    own = group("mcp::shop", "model-context-protocol", "https://shop.example/mcp", require_approval="always")
    other = group("builtin::mcp/x", "model-context-protocol", url)

    assert Turn().add(own, "cancel").add(other, "look").asking() == {"cancel"}


@pytest.mark.parametrize(
    "function", ["pay-function", "arn:aws:lambda:eu-west-1:123456789012:function:pay-function:live", "pay-function:1"]
)
def test_a_function_waits_in_every_toolgroup(function: str) -> None:
    turn = Turn().add(PAY, "pay", "look", approval={"always": {"tool_names": ["pay"]}})

    assert turn.add(functions("other", settle=function, read="read"), "settle", "read").asking() == {"pay", "settle"}


def test_two_tools_of_one_function_are_two_within_their_toolgroup() -> None:
    shop = functions("shop", refund="shop-function", look="shop-function")

    asking = Turn().add(shop, "refund", "look", approval={"always": {"tool_names": ["refund"]}}).asking()

    assert asking == {"refund"}


def test_the_vaults_of_a_session_keep_the_approvals_of_its_servers() -> None:
    server = AgentToolGroupWithArgs(name="builtin::mcp", args={"server_label": "a"}, require_approval="always")

    [offered] = offer_vaults(AgentConfig(model="m", instructions="", toolgroups=[server]), ["v"], "").toolgroups

    assert isinstance(offered, ServerWithVaults)
    assert (offered.require_approval, offered.args, offered.vaults.ids) == ("always", {"server_label": "a"}, ["v"])


def test_an_endpoint_waits_in_every_toolgroup() -> None:
    own = endpoints("shop", refund="POST https://shop.example/orders/{id}/refund")
    same = endpoints(
        "other",
        undo="post https://shop.example:443/orders/{order}/refund",
        read="GET https://shop.example/orders/{id}/refund",
    )

    assert Turn().add(own, "refund", approval="always").add(same, "undo", "read").asking() == {"refund", "undo"}


@pytest.mark.parametrize("url", ["orders/5/refund", "orders/{id}/{what}", "orders/order-{id}/refund"])
def test_an_endpoint_waits_whatever_another_definition_fixes_of_its_path(url: str) -> None:
    own = endpoints("shop", refund="POST https://shop.example/orders/{id}/refund")
    same = endpoints("other", undo=f"POST https://shop.example/{url}", all="POST https://shop.example/orders/refund")

    assert Turn().add(own, "refund", approval="always").add(same, "undo", "all").asking() == {"refund", "undo"}


def test_the_args_that_define_a_toolgroup_may_say_so() -> None:
    said = group("bank", tools=[{"name": "pay", "function": "f"}], require_approval={"always": {"tool_names": ["pay"]}})

    assert Turn().add(said, "pay", "look").asking() == {"pay"}
    with pytest.raises(InvalidRequest):
        Turn().add(group("bank", tools=[], require_approval="sometimes"), "pay").asking()


@pytest.mark.parametrize("approval", [{"always": {"tool_names": ["pya"]}}, {"never": {"tool_names": ["pya"]}}])
def test_a_mistyped_name_is_refused(approval: Any) -> None:
    for turn, of_all in ((Turn().add(PAY, "pay", approval=approval), None), (Turn().add(PAY, "pay"), approval)):
        with pytest.raises(InvalidRequest, match="'pya'") as caught:
            turn.asking(of_all)
        assert (caught.value.code, caught.value.param) == ("tool_not_found", "require_approval")


def test_a_mistyped_name_in_a_definition_is_refused_unless_a_server_lists_the_tools() -> None:
    approval = {"always": {"tool_names": ["pya"]}}
    server = group("mcp::shop", "model-context-protocol", "https://shop.example/mcp", require_approval=approval)

    with pytest.raises(InvalidRequest, match="'pya'"):
        Turn().add(group("bank", tools=[], require_approval=approval), "pay", "look", only="pay").asking()
    assert Turn().add(server, "pay").asking() == set()


def test_names_are_not_checked_while_a_server_does_not_answer() -> None:
    silent = group("mcp::shop", "model-context-protocol", "https://shop.example/mcp")
    turn = Turn().add(silent, approval={"always": {"tool_names": ["cancel"]}}).add(PAY, "pay")

    assert turn.asking({"always": {"tool_names": ["cancel", "pay"]}}) == {"pay"}


def test_an_approval_among_the_args_of_a_call_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="beside the args"):
        Turn().add(PAY, "pay", args={"require_approval": "always"}).asking()


@pytest.mark.parametrize("place", ["args", "query_config"])
@pytest.mark.parametrize("named", ["bank", "bank/pay"])
def test_a_query_generator_cannot_run_a_tool_that_waits(named: str, place: str) -> None:
    config: dict[str, Any] = {"query_generator_config": {"type": "custom", "toolgroup": named}}
    args = config if place == "args" else {"query_config": config}
    turn = Turn().add(group("builtin::rag", "rag-runtime"), "knowledge_search", args=args)

    assert turn.add(PAY, "pay").asking() == set()
    with pytest.raises(InvalidRequest, match="query generator") as caught:
        turn.add(PAY, "pay", approval="always").asking()
    assert caught.value.code == "approval_not_possible"
    with pytest.raises(InvalidRequest, match="query generator"):
        Turn().add(group("builtin::rag", "rag-runtime"), "knowledge_search", args=args).asking("always")


def test_a_query_generator_cannot_reach_what_waits_by_another_toolgroup() -> None:
    args = {"query_generator_config": {"type": "custom", "toolgroup": "other"}}
    turn = Turn().add(group("builtin::rag", "rag-runtime"), "knowledge_search", args=args).add(PAY, "pay", "look")

    assert turn.asking() == set()
    turn.add(PAY, "pay", "look", approval={"always": {"tool_names": ["pay"]}})
    with pytest.raises(InvalidRequest, match="query generator") as caught:
        turn.asking()
    assert caught.value.code == "approval_not_possible"
