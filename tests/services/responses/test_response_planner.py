from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.script_model import Script, script
from tests.services.conftest import MakeWorkerFixture

from stint.domain.errors import InvalidRequest
from stint.domain.inference import InferenceRequest, ReasoningOptions, ToolSignature
from stint.domain.openai.mcp_items import McpListTools, McpToolInfo
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_tools import ResponseTool, ResponseToolChoice
from stint.domain.openai.stored_responses import ResponseSettings
from stint.domain.tools import ToolChoice
from stint.loop.toolbox import ServerTool, Toolbox
from stint.services.responses.masking import with_credentials
from stint.services.responses.planner import ResponsePlan, choose, read_format
from stint.tools.port import Toolgroup

CHOICE: TypeAdapter[Any] = TypeAdapter(ResponseToolChoice)
TOOLS: TypeAdapter[Any] = TypeAdapter(list[ResponseTool])
SUMS = McpListTools(server_label="sums", tools=[McpToolInfo(name="add"), McpToolInfo(name="times")])
SHOP = {"type": "mcp", "server_label": "shop", "server_url": "http://127.0.0.1:9/mcp"}
FUNCTION = {"type": "function", "name": "get"}


def signature(name: str) -> ToolSignature:
    return ToolSignature(name, "", {})


def toolbox() -> Toolbox:
    group: Any = Toolgroup("sums", "mcp", "")
    provider: Any = None
    server = {name: ServerTool(signature(name), group, provider) for name in ("add", "times", "web_search")}
    return Toolbox({"get": signature("get")}, server, approvals=frozenset({"add", "times"}))


@pytest.mark.parametrize(
    ("choice", "told", "names"),
    [
        (None, ToolChoice.auto, "get add times web_search"),
        ("required", ToolChoice.required, "get add times web_search"),
        ("none", ToolChoice.none, "get add times web_search"),
        ({"type": "function", "name": "get"}, "get", "get add times web_search"),
        ({"type": "web_search"}, "web_search", "get add times web_search"),
        ({"type": "mcp", "server_label": "sums", "name": "add"}, "add", "get add times web_search"),
        ({"type": "mcp", "server_label": "sums"}, ToolChoice.required, "add times"),
        ({"type": "allowed_tools", "tools": [FUNCTION]}, ToolChoice.auto, "get"),
        ({"type": "allowed_tools", "mode": "none", "tools": [FUNCTION]}, ToolChoice.none, "get"),
        (
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "mcp", "server_label": "sums", "name": "add"}, {"type": "web_search"}],
            },
            ToolChoice.required,
            "add web_search",
        ),
    ],
)
def test_a_choice_tells_how_tools_are_used_and_which_may_be_called(choice: Any, told: Any, names: str) -> None:
    chosen, left = choose(CHOICE.validate_python(choice) if choice else None, toolbox(), [SUMS])

    assert chosen == told
    assert [each.name for each in left.signatures] == names.split()
    assert left.approvals == {"add", "times"} & set(names.split())


@pytest.mark.parametrize("name", ["divide", None])
def test_a_choice_of_what_a_server_does_not_have_is_refused(name: str | None) -> None:
    choice = CHOICE.validate_python({"type": "mcp", "server_label": "sums", "name": name})

    with pytest.raises(InvalidRequest, match="Its tools are") as refused:
        choose(choice, toolbox(), [SUMS if name else McpListTools(server_label="sums")])

    assert (refused.value.code, refused.value.param) == ("tool_not_found", "tool_choice")


def test_credentials_go_to_their_own_server_beside_those_of_the_caller() -> None:
    tools = TOOLS.validate_python(
        [
            SHOP | {"authorization": "token"},
            SHOP | {"server_label": "b", "server_url": "https://b.example/mcp", "headers": {"X-Key": "1"}},
            SHOP | {"server_label": "c", "server_url": "https://c.example/mcp"},
        ]
    )

    data = with_credentials(tools, {"key": "k", "mcp_headers": {"https://d.example": ["X: 1"]}})

    assert data == {
        "key": "k",
        "mcp_headers": {
            "https://d.example": ["X: 1"],
            "http://127.0.0.1:9/mcp": {"Authorization": "Bearer token"},
            "https://b.example/mcp": {"X-Key": "1"},
        },
    }
    assert with_credentials(tools[2:], {"key": "k"}) == {"key": "k"}


@pytest.mark.parametrize(
    ("wanted", "checked"),
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"type": "object"}),
        ({"type": "json_schema", "name": "a", "schema": {"type": "array"}, "strict": True}, {"type": "array"}),
        ({"type": "json_schema", "name": "a", "schema": {"type": "array"}}, None),
    ],
)
def test_strict_answers_are_checked_against_their_schema(wanted: Any, checked: Any) -> None:
    settings = ResponseSettings.model_validate({"text": {"format": wanted}} if wanted else {})

    form, schema = read_format(settings)

    assert schema == checked
    assert (form is None) == (wanted is None or wanted["type"] == "text")


async def planned(make_worker_fixture: MakeWorkerFixture, model: Script | None = None, **fields: Any) -> ResponsePlan:
    planner = make_worker_fixture(model or script()).services.responses.planner
    request = CreateResponse.model_validate({"model": "test/m", "input": "Hello"} | fields)
    return await planner.plan("test/m", request.to_settings(), request.tools, {})


async def test_a_plan_bounds_the_whole_response(make_worker_fixture: MakeWorkerFixture) -> None:
    fields: dict[str, Any] = {"max_output_tokens": 100, "max_tool_calls": 2, "max_infer_iters": 3, "truncation": "auto"}

    plan = (await planned(make_worker_fixture, reasoning={"effort": "low"}, parallel_tool_calls=False, **fields)).plan

    assert (plan.max_output_tokens, plan.max_tool_calls, plan.max_infer_iters, plan.shortens) == (100, 2, 3, True)
    assert (plan.reasoning, plan.calls_at_once) == (ReasoningOptions("low", None), 1)
    assert (await planned(make_worker_fixture)).plan.max_infer_iters == 100


async def test_tools_are_the_clients_or_the_servers_and_lists_are_kept(make_worker_fixture: MakeWorkerFixture) -> None:
    plan = await planned(make_worker_fixture, tools=[FUNCTION, SHOP | {"allowed_tools": ["buy"]}])

    toolbox = plan.plan.toolbox
    assert (list(toolbox.client), list(toolbox.server), [*toolbox.approvals]) == (["get"], ["buy"], ["buy"])
    assert [(each.server_label, [tool.name for tool in each.tools]) for each in plan.listed] == [("shop", ["buy"])]


@pytest.mark.parametrize(
    ("tools", "code"),
    [([FUNCTION | {"name": "buy"}, SHOP], "duplicate_tool"), ([SHOP, SHOP | {"server_label": "b"}], "duplicate_tool")],
)
async def test_two_tools_of_one_name_are_refused(make_worker_fixture: MakeWorkerFixture, tools: Any, code: str) -> None:
    with pytest.raises(InvalidRequest, match="'buy'") as refused:
        await planned(make_worker_fixture, tools=tools)

    assert (refused.value.code, refused.value.param) == (code, "tools")


async def test_what_a_provider_lacks_is_refused_in_words_of_the_request(make_worker_fixture: MakeWorkerFixture) -> None:
    class Picky(Script):
        def check(self, request: InferenceRequest) -> None:
            raise InvalidRequest("No such format here.", param="response_format")

    with pytest.raises(InvalidRequest, match="No such format") as refused:
        await planned(make_worker_fixture, Picky([]))

    assert refused.value.param == "text.format"
