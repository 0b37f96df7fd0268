import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.servers import wolfram
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.domain.content import text_of
from stint.domain.errors import ToolUnavailable
from stint.net.guard import Guard
from stint.tools.port import Invocation, Toolgroup, ToolOutcome
from stint.tools.search.wolfram_alpha import WolframAlpha

GROUP = Toolgroup("builtin::wolfram_alpha", "wolfram-alpha")


@pytest.fixture
def service() -> Iterator[ScriptedHTTPServer]:
    with ScriptedHTTPServer(wolfram.answer) as server:
        yield server


@pytest.fixture
def tool(guard: Guard, service: ScriptedHTTPServer) -> WolframAlpha:
    return WolframAlpha(guard, wolfram.APP_ID, base_url=f"{service.url}/v2", timeout=1)


async def ask(tool: WolframAlpha, query: Any, name: str = "wolfram_alpha", **data: Any) -> ToolOutcome:
    return await tool.invoke(GROUP, Invocation(name, {"query": query}, "call_1", data))


async def test_the_tool_is_listed_as_llama_stack_lists_it(tool: WolframAlpha) -> None:
    (listed,) = await tool.list_tools(GROUP, {})

    assert (listed.name, listed.parameters["required"]) == ("wolfram_alpha", ["query"])


async def test_the_answer_keeps_the_pods_up_to_the_result(tool: WolframAlpha) -> None:
    outcome = await ask(tool, "1+1")

    assert not outcome.error
    assert json.loads(text_of(outcome.content)) == {
        "queryresult": {
            "success": True,
            "inputstring": "1+1",
            "pods": [
                {"title": "Input", "subpods": [{"title": "", "plaintext": "1 + 1"}]},
                {"title": "Result", "subpods": [{"title": "", "plaintext": "2"}]},
            ],
        }
    }


async def test_a_query_that_is_not_understood_gives_what_may_be_meant(tool: WolframAlpha) -> None:
    outcome = await ask(tool, "integrat")

    assert not outcome.error
    result = json.loads(text_of(outcome.content))["queryresult"]
    assert (result["success"], result["didyoumeans"]["val"]) == (False, "integrate")


async def test_the_callers_app_id_goes_before_the_servers(guard: Guard, service: ScriptedHTTPServer) -> None:
    tool = WolframAlpha(guard, "WRONG", base_url=f"{service.url}/v2")

    assert not (await ask(tool, "1+1", wolfram_alpha_api_key=wolfram.APP_ID)).error


async def test_a_wrong_app_id_is_unavailable(guard: Guard, service: ScriptedHTTPServer) -> None:
    tool = WolframAlpha(guard, "S3CRET", base_url=f"{service.url}/v2")

    with pytest.raises(ToolUnavailable, match="refused the app id") as caught:
        await ask(tool, "1+1")

    assert "S3CRET" not in caught.value.message


async def test_without_an_app_id_the_message_says_where_to_put_one(guard: Guard) -> None:
    with pytest.raises(ToolUnavailable, match=r"sets WOLFRAM_ALPHA_API_KEY \(.*wolfram_alpha_api_key"):
        await ask(WolframAlpha(guard), "1+1")


@pytest.mark.parametrize(
    ("query", "name", "words"),
    [
        ("fail", "wolfram_alpha", "Internal failure"),
        ("", "wolfram_alpha", "must be a string"),
        ("1+1", "other", "no tool named 'other'"),
    ],
)
async def test_failures_are_outcomes(tool: WolframAlpha, query: str, name: str, words: str) -> None:
    outcome = await ask(tool, query, name)

    assert outcome.error
    assert words in text_of(outcome.content)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply((b"{}",)), "undocumented form"),
        (Reply((b"<queryresult/>",)), "did not return JSON"),
        (Reply((f"overloaded, {wolfram.APP_ID}".encode(),), 503), "answered 503: overloaded, ***"),
        (Reply(ending="hang"), "within 1 s"),
        (Reply(ending="cut", parts=(b"{",)), "RemoteProtocolError"),
    ],
)
async def test_a_service_that_fails_is_an_outcome(
    tool: WolframAlpha, service: ScriptedHTTPServer, reply: Reply, words: str
) -> None:
    service.script(reply)

    outcome = await ask(tool, "1+1")

    assert outcome.error
    assert words in text_of(outcome.content)
