from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.unit.services.responses.item_fixture import encode

from stint.domain.ids import new_name
from stint.domain.inference import AnswerDetails, Reasoning
from stint.domain.openai.items import FunctionCall, Message, ReasoningItem, WebSearchCall
from stint.domain.openai.mcp_items import McpApprovalRequest, McpCall, McpListTools, McpToolInfo
from stint.domain.openai.opaque import OpaqueReader
from stint.domain.openai.stored_responses import ResponseHeader, ResponseRecord, ResponseSettings, StoredResponse
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage, InferenceStep, Step, StopReason, ToolExecutionStep
from stint.domain.tools import ToolCall, ToolResponse
from stint.services.responses.output_items import OutputItems, output_of

SETTINGS: TypeAdapter[ResponseSettings] = TypeAdapter(ResponseSettings)
RESPONSE = new_name("resp")
DIGITS = RESPONSE.removeprefix("resp_")
SUMS = McpListTools(server_label="sums", tools=[McpToolInfo(name="add"), McpToolInfo(name="times")])
FUNCTION = {"type": "function", "name": "get"}
MCP = {"type": "mcp", "server_label": "sums", "server_url": "https://sums.example", "require_approval": "never"}
SEARCH = {"type": "web_search"}
PAGES = '{"query": "plums", "top_k": [{"url": "https://example.com/1"}, {"url": "https://example.com/2"}]}'


def made(*tools: Any, listed: tuple[McpListTools, ...] = (), **settings: Any) -> OutputItems:
    return OutputItems(RESPONSE, SETTINGS.validate_python({"tools": list(tools)} | settings), encode, listed)


def call(name: str, call_id: str = "c1", arguments: Any = None) -> ToolCall:
    return ToolCall(call_id=call_id, tool_name=name, arguments=arguments or {"a": 1}, arguments_json='{"a": 1}')


def answer(text: str = "", *calls: ToolCall, stop: StopReason = "end_of_turn") -> InferenceStep:
    message = CompletionMessage(content=text, stop_reason=stop, tool_calls=list(calls))
    return InferenceStep(turn_id="t", step_id="s", started_at=now(), model_response=message)


def ran(call: ToolCall, content: str = "3", **metadata: Any) -> ToolExecutionStep:
    response = ToolResponse(call_id=call.call_id, tool_name=call.tool_name, content=content, metadata=metadata or None)
    return ToolExecutionStep(turn_id="t", step_id="s", started_at=now(), tool_calls=[call], tool_responses=[response])


def kinds(output: OutputItems) -> list[str]:
    return [item.type for item in output.items]


def test_an_answer_is_its_reasoning_its_text_and_its_calls_in_the_order_of_their_ids() -> None:
    output = made(FUNCTION)

    items = output.add_step(
        answer("Look.", call("get"), call("get", "c2")), AnswerDetails(reasoning=Reasoning(text="hm"))
    )

    assert [item.id for item in items] == [f"rs_{DIGITS}00", f"msg_{DIGITS}01", f"fc_{DIGITS}02", f"fc_{DIGITS}03"]
    assert items == output.items
    assert [item.call_id for item in items if isinstance(item, FunctionCall)] == ["c1", "c2"]


def test_ids_go_on_through_all_steps_and_begin_with_the_lists_of_tools() -> None:
    output = made(MCP, listed=(SUMS,))

    for step in (answer("", call("add")), ran(call("add")), answer("It is 3.")):
        output.add_step(step)

    assert [item.id for item in output.items] == [f"mcpl_{DIGITS}00", f"mcp_{DIGITS}01", f"msg_{DIGITS}02"]


def test_a_call_has_the_arguments_that_the_model_wrote() -> None:
    [item] = made(FUNCTION).add_step(
        answer("", ToolCall(call_id="c", tool_name="get", arguments={"a": 1}, arguments_json='{"a":  1}'))
    )

    assert isinstance(item, FunctionCall)
    assert item.arguments == '{"a":  1}'


@pytest.mark.parametrize("details", [AnswerDetails(filtered=True), AnswerDetails()])
def test_an_answer_that_was_cut_short_is_incomplete_and_calls_nothing(details: AnswerDetails) -> None:
    stop: StopReason = "end_of_turn" if details.filtered else "out_of_tokens"

    cut = made(FUNCTION).add_step(answer("Half a", call("get"), stop=stop), details)
    empty = made(FUNCTION).add_step(answer("", call("get"), stop=stop), details)

    assert [(item.type, getattr(item, "status", None)) for item in (*cut, *empty)] == [("message", "incomplete")] * 2


def test_an_empty_answer_is_an_empty_message() -> None:
    [item] = made().add_step(answer(""))

    assert isinstance(item, Message)
    assert item.model_dump()["content"] == [{"type": "output_text", "text": "", "annotations": [], "logprobs": []}]


def test_a_refusal_is_a_part_of_its_own() -> None:
    [item] = made().add_step(answer("No."), AnswerDetails(refusal=True))

    assert isinstance(item, Message)
    assert item.model_dump()["content"] == [{"type": "refusal", "refusal": "No."}]


@pytest.mark.parametrize(
    ("reasoning", "summary", "content"),
    [
        (None, ["hm"], None),
        ({"effort": "low", "summary": "auto"}, ["hm"], None),
        ({"effort": "low"}, [], ["hm"]),
    ],
)
def test_reasoning_is_a_summary_unless_it_was_asked_for_without_one(reasoning: Any, summary: Any, content: Any) -> None:
    [item, _] = made(reasoning=reasoning).add_step(answer("Yes."), AnswerDetails(reasoning=Reasoning(text="hm")))

    assert isinstance(item, ReasoningItem)
    assert [part.text for part in item.summary] == summary
    assert [part.text for part in item.content or []] == (content or [])
    assert item.encrypted_content is None


def test_reasoning_is_whole_in_its_encrypted_content_for_who_includes_it() -> None:
    thought = Reasoning(text="hm", signature="signed", redacted="secret")

    [item, _] = made(include=["reasoning.encrypted_content"]).add_step(answer("Yes."), AnswerDetails(reasoning=thought))

    assert isinstance(item, ReasoningItem)
    assert item.encrypted_content
    assert OpaqueReader().read(item.encrypted_content, Reasoning) == thought


def test_a_call_of_a_servers_tool_is_there_with_its_result() -> None:
    output = made(MCP, listed=(SUMS,))

    output.add_step(answer("", call("add")))
    [item] = output.add_step(ran(call("add"), "3"))

    assert isinstance(item, McpCall)
    assert (item.server_label, item.name, item.arguments) == ("sums", "add", '{"a": 1}')
    assert (item.output, item.error, item.status) == ("3", None, "completed")


def test_a_call_that_failed_has_an_error_and_no_output() -> None:
    output = made(MCP, listed=(SUMS,))

    [item] = output.add_step(ran(call("add"), "no luck", error=True))

    assert isinstance(item, McpCall)
    assert item.model_dump(mode="json")["error"] == {"type": "mcp_tool_execution_error", "content": "no luck"}
    assert (item.output, item.status) == (None, "failed")


def test_a_call_that_waits_for_consent_asks_for_it_and_is_known_by_that() -> None:
    output = made(MCP | {"require_approval": "always"}, listed=(SUMS,))
    step = answer("", call("add"))

    [item] = output.add_step(step)
    asked = output.calls.in_context(step)
    [done] = output.add_step(ran(asked.model_response.tool_calls[0]))

    assert isinstance(item, McpApprovalRequest)
    assert (item.server_label, item.name, item.arguments) == ("sums", "add", '{"a": 1}')
    assert [each.call_id for each in asked.model_response.tool_calls] == [item.id]
    assert isinstance(done, McpCall)
    assert done.approval_request_id == item.id


@pytest.mark.parametrize(
    ("choice", "name", "kind"),
    [
        ({"type": "allowed_tools", "tools": [{"type": "mcp", "server_label": "sums"}]}, "get", None),
        ({"type": "allowed_tools", "tools": [{"type": "function", "name": "get"}]}, "add", None),
        ({"type": "allowed_tools", "tools": [{"type": "function", "name": "get"}]}, "web_search", None),
        ({"type": "mcp", "server_label": "sums"}, "get", None),
        ({"type": "allowed_tools", "tools": [{"type": "mcp", "server_label": "sums", "name": "add"}]}, "times", None),
        (
            {"type": "allowed_tools", "tools": [{"type": "mcp", "server_label": "sums", "name": "add"}]},
            "add",
            "mcp_call",
        ),
        ({"type": "function", "name": "get"}, "add", "mcp_call"),
        ("auto", "web_search", "web_search_call"),
    ],
)
def test_what_may_not_be_called_is_no_item(choice: Any, name: str, kind: str | None) -> None:
    output = made(FUNCTION, MCP, SEARCH, listed=(SUMS,), tool_choice=choice)

    output.add_step(answer("", call(name)))
    output.add_step(ran(call(name)))

    assert kinds(output) == ["mcp_list_tools", *([kind] if kind else [])]


def test_a_tool_that_nobody_declared_is_no_item() -> None:
    output = made(FUNCTION)

    for name in ("web_search", "add"):
        output.add_step(answer("", call(name)))
        output.add_step(ran(call(name), error=True))

    assert output.items == []


@pytest.mark.parametrize("arguments", ["[1", "text"])
def test_a_call_whose_arguments_are_no_object_is_none_of_the_clients(arguments: str) -> None:
    broken = ToolCall(call_id="c", tool_name="get", arguments=arguments, arguments_json=arguments)

    assert made(FUNCTION).add_step(answer("", broken)) == []


@pytest.mark.parametrize(
    ("include", "result", "failed", "sources"),
    [
        ([], PAGES, False, None),
        (["web_search_call.action.sources"], PAGES, False, ["https://example.com/1", "https://example.com/2"]),
        (["web_search_call.action.sources"], PAGES[:60], False, []),
        (["web_search_call.action.sources"], "The engine is away.", True, []),
    ],
)
def test_a_search_tells_its_sources_to_who_asks(include: Any, result: str, failed: bool, sources: Any) -> None:
    search = call("web_search", arguments={"query": "plums"})
    output = made(SEARCH, include=include)

    [item] = output.add_step(ran(search, result, **({"error": True} if failed else {})))

    assert isinstance(item, WebSearchCall)
    assert (item.action.query, item.action.queries) == ("plums", ["plums"])
    assert item.status == ("failed" if failed else "completed")
    told = item.action.sources
    assert (told if told is None else [source.url for source in told]) == sources


def test_a_stored_response_gives_the_same_items_as_the_one_that_ran() -> None:
    steps: list[Step] = [answer("", call("add"), call("get")), ran(call("add"))]
    output = made(FUNCTION, MCP, listed=(SUMS,))
    for step in steps:
        output.add_step(step)
    header = ResponseHeader(response_id=RESPONSE, created_at=1, model="m", settings=output.settings, listed=[SUMS])

    stored = StoredResponse(header, [ResponseRecord(step=step) for step in steps])

    assert output_of(stored, encode).items == output.items
    assert kinds(output) == ["mcp_list_tools", "mcp_call", "function_call"]
