import asyncio
import base64
import json
import re
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from infra.local.functions import Functions, FunctionSpec
from infra.local.lambda_api import lambda_api
from infra.local.server import listen, serving
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.domain.content import text_of
from stint.domain.errors import InvalidRequest, ToolUnavailable
from stint.tools.lambda_function.provider import LambdaFunctions
from stint.tools.port import ATTACHMENTS, Invocation, Toolgroup, ToolOutcome

SCHEMA = {"type": "object", "properties": {"do": {"type": "string"}}, "required": ["do"]}


def group(function: str = "orders", **definition: Any) -> Toolgroup:
    tool = {"name": "order", "description": "Orders.", "parameters": SCHEMA, "function": function, **definition}
    return Toolgroup("lambda::orders", "lambda-function", config={"tools": [tool]})


async def call(toolgroup: Toolgroup, **arguments: Any) -> ToolOutcome:
    return await LambdaFunctions().invoke(toolgroup, Invocation("order", arguments, "call_1"))


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return monkeypatch


@pytest.fixture
async def function(credentials: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """A real function process behind the local cloud's Lambda API."""
    spec = FunctionSpec(
        name="orders",
        handler="app.handler",
        code=Path(__file__).parent / "apps",
        layers=(),
        environment={},
        timeout=10,
        memory=128,
        wrapper=None,
        python=Path(sys.executable),
    )
    functions = Functions([spec], concurrency=2, log=lambda *_: None)
    with listen() as listener:
        credentials.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{listener.getsockname()[1]}")
        async with serving(lambda_api(functions, {"orders"}), listener):
            yield spec.arn
        await functions.stop()


@pytest.fixture
def api(credentials: pytest.MonkeyPatch, server: ScriptedHTTPServer) -> ScriptedHTTPServer:
    """Lambda's API, scripted."""
    credentials.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url)
    return server


async def test_the_registration_defines_the_tools() -> None:
    (tool,) = await LambdaFunctions().list_tools(group(), {})

    assert (tool.name, tool.description, tool.parameters) == ("order", "Orders.", SCHEMA)


async def test_a_function_gets_the_arguments_alone_and_its_answer_is_the_result(function: str) -> None:
    by_name = await call(group(), do="echo", ids=[1, "ü"])
    by_arn = await call(group(function), do="text")
    nothing = await call(group(f"{function}:$LATEST"), do="nothing")

    assert (text_of(by_name.content), by_name.error) == ('{"do":"echo","ids":[1,"ü"]}', False)
    assert [text_of(outcome.content) for outcome in (by_arn, nothing)] == ["just text", ""]


async def test_the_functions_of_64_turns_of_a_process_run_at_once(api: ScriptedHTTPServer) -> None:
    everyone, tools = threading.Event(), LambdaFunctions()
    api.script(*(Reply((b'"done"',), before=everyone) for _ in range(64)))

    calls = [
        asyncio.create_task(tools.invoke(group(timeout=60), Invocation("order", {"do": "wait"}, f"call_{number}")))
        for number in range(64)
    ]
    async with asyncio.timeout(60):
        while len(api.requests) < 64:  # noqa: ASYNC110  # the server's thread sets no event of this loop
            await asyncio.sleep(0.01)
    everyone.set()

    assert [text_of((await each).content) for each in calls] == ["done"] * 64


async def test_a_function_may_attach_files_for_the_user(function: str) -> None:
    outcome = await call(group(), do="attach")

    assert text_of(outcome.content) == "see the file"
    assert outcome.metadata[ATTACHMENTS] == [
        {"content": {"uri": "https://files.example/r.csv"}, "mime_type": "text/csv"}
    ]


async def test_a_function_that_fails_is_an_outcome_without_its_trace(function: str) -> None:
    failed, died = await call(group(), do="fail"), await call(group(), do="die")

    assert text_of(failed.content) == "The function failed: ValueError: no such order"
    assert failed.error
    assert died.error


async def test_functions_run_side_by_side(function: str) -> None:
    tools = LambdaFunctions()
    calls = (tools.invoke(group(), Invocation("order", {"do": "sleep", "seconds": 0.1}, "c")) for _ in range(2))

    outcomes = await asyncio.gather(*calls)

    assert [text_of(outcome.content) for outcome in outcomes] == ["slept", "slept"]


async def test_a_function_that_takes_too_long_is_timed_out(function: str) -> None:
    outcome = await call(group(timeout=0.5), do="sleep", seconds=3)

    assert outcome.error
    assert "within 0.5 s" in text_of(outcome.content)


async def test_an_unknown_function_is_unavailable(function: str) -> None:
    reason = r"\(ResourceNotFoundException\): .* make run TOOLS=template.yaml$"
    with pytest.raises(ToolUnavailable, match=rf"^The function.*'order' cannot be invoked {reason}"):
        await call(group("nosuch"), do="echo")


async def test_an_unknown_tool_is_an_outcome() -> None:
    outcome = await LambdaFunctions().invoke(group(), Invocation("nosuch", {}, "c"))

    assert outcome.error
    assert "The tools are: order." in text_of(outcome.content)


async def test_the_key_of_the_call_travels_in_the_client_context(api: ScriptedHTTPServer) -> None:
    await LambdaFunctions().invoke(group(), Invocation("order", {"do": "echo"}, "call_1", key="turn:1:call_1"))

    context = json.loads(base64.b64decode(api.requests[0].headers["x-amz-client-context"]))
    names = {"tool_name": "order", "toolgroup_id": "lambda::orders", "call_depth": "1"}
    assert context == {"custom": {"idempotency_key": "turn:1:call_1", "tool_call_id": "call_1", **names}}


@pytest.mark.parametrize(
    ("status", "code", "model_hears"),
    [
        (429, "TooManyRequestsException", True),
        (413, "RequestTooLargeException", True),
        (403, "AccessDeniedException", False),
        (500, "ServiceException", False),
    ],
)
async def test_lambdas_own_errors_are_told_apart_and_nothing_is_repeated(
    api: ScriptedHTTPServer, status: int, code: str, model_hears: bool
) -> None:
    api.script(Reply((b'{"Message": "as the test asked"}',), status, {"x-amzn-ErrorType": code}))

    if model_hears:
        outcome = await call(group(), do="echo")
        assert (outcome.error, "as the test asked" in text_of(outcome.content)) == (True, True)
    else:
        with pytest.raises(ToolUnavailable, match=code):
            await call(group(), do="echo")
    assert len(api.requests) == 1


@pytest.mark.parametrize("body", [b"not json", b'"\\ud800"', b"NaN"])
async def test_an_answer_that_is_no_json_is_text(api: ScriptedHTTPServer, body: bytes) -> None:
    api.script(Reply((body,)))

    assert text_of((await call(group(), do="echo")).content) == body.decode()


@pytest.mark.parametrize(
    "body",
    [b'{"content":"x","attachments":[{"content":"y"}]}', b'{"content":"x","attachments":"y"}', b'{"content":"x"}'],
)
async def test_an_object_that_only_looks_like_attachments_is_json(api: ScriptedHTTPServer, body: bytes) -> None:
    api.script(Reply((body,)))

    outcome = await call(group(), do="echo")

    assert (text_of(outcome.content), outcome.metadata) == (body.decode(), {})


async def test_an_unexplained_failure_is_an_outcome(api: ScriptedHTTPServer) -> None:
    api.script(Reply((b"null",), headers={"X-Amz-Function-Error": "Unhandled"}))

    outcome = await call(group(), do="echo")

    assert (outcome.error, text_of(outcome.content)) == (True, "The function failed without an error message.")


async def test_a_lambda_api_that_is_not_there_is_unavailable(credentials: pytest.MonkeyPatch) -> None:
    credentials.setenv("AWS_ENDPOINT_URL_LAMBDA", "http://127.0.0.1:1")

    with pytest.raises(ToolUnavailable, match=r"^The function.*EndpointConnectionError"):
        await call(group(), do="echo")


@pytest.mark.parametrize("function", ["", "a b", "../x", "https://x.example", "x" * 257])
async def test_a_malformed_function_name_is_told_where(function: str) -> None:
    with pytest.raises(InvalidRequest, match=r"tools.0: function"):
        await LambdaFunctions().list_tools(group(function), {})


OWN = ["shop-worker", " shop-turns "]


@pytest.mark.parametrize(
    "function",
    [
        "shop-worker",
        "Shop-Worker",
        "shop-turns",
        "shop-worker:$LATEST",
        "shop-worker:live",
        "function:shop-worker",
        "123456789012:shop-worker",
        "123456789012:function:shop-worker",
        "123456789012:function:shop-worker:7",
        "eu-west-1:123456789012:function:shop-worker",
        "arn:aws:lambda:eu-west-1:123456789012:function:shop-worker",
        "arn:aws:lambda:eu-west-1:123456789012:function:shop-worker:live",
        "arn:aws-us-gov:lambda:us-gov-west-1:999999999999:function:shop-turns:$LATEST",
    ],
)
async def test_a_function_of_the_stack_itself_is_no_tool(api: ScriptedHTTPServer, function: str) -> None:
    tools = LambdaFunctions(OWN)

    with pytest.raises(InvalidRequest, match=f"'order'.*'lambda::orders'.*{re.escape(repr(function))}") as refused:
        await tools.check(group(function))
    with pytest.raises(InvalidRequest, match="belongs to this Stint stack"):
        await tools.invoke(group(function), Invocation("order", {}, "call_1"))

    assert (refused.value.code, refused.value.param) == ("function_not_allowed", "args")
    assert api.requests == []


@pytest.mark.parametrize("function", ["shop-worker-tool", "my-shop-worker", "shop", "worker:live"])
async def test_a_function_with_a_similar_name_is_a_tool(api: ScriptedHTTPServer, function: str) -> None:
    api.script(Reply((b'"done"',)))
    tools = LambdaFunctions(OWN)

    await tools.check(group(function))
    outcome = await tools.invoke(group(function), Invocation("order", {}, "call_1"))

    assert text_of(outcome.content) == "done"


async def test_a_group_with_one_function_of_the_stack_keeps_its_other_tools(api: ScriptedHTTPServer) -> None:
    api.script(Reply((b'"done"',)))
    mine, own = group("orders").config["tools"][0], group("shop-worker").config["tools"][0] | {"name": "own"}
    both = Toolgroup("lambda::orders", "lambda-function", config={"tools": [mine, own]})
    tools = LambdaFunctions(OWN)

    assert [tool.name for tool in await tools.list_tools(both, {})] == ["order", "own"]
    assert text_of((await tools.invoke(both, Invocation("order", {}, "call_1"))).content) == "done"
    with pytest.raises(InvalidRequest):
        await tools.check(both)
