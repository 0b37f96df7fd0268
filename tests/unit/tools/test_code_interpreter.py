"""The tool that runs code, against an HTTP server in place of Lambda."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.domain.errors import ToolUnavailable
from stint.metering import Meter, set_meter
from stint.tools.code_interpreter.files import is_file_name, make_name
from stint.tools.code_interpreter.provider import CodeInterpreter
from stint.tools.code_interpreter.sandbox import Sandbox
from stint.tools.port import ATTACHMENTS, Invocation, Toolgroup, ToolOutcome

GROUP = Toolgroup("builtin::code_interpreter", "code-interpreter")


@pytest.fixture
def functions(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedHTTPServer]:
    """Yield a server to which Lambda's client sends its requests."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with ScriptedHTTPServer(lambda _: Reply(status=500)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", server.url)
        yield server


async def call(**arguments: Any) -> ToolOutcome:
    provider = CodeInterpreter(Sandbox("stint-sandbox", lambda: "team-a"))
    return await provider.invoke(GROUP, Invocation("code_interpreter", arguments, "call_1"))


def answer(**result: Any) -> Reply:
    return Reply((json.dumps({"stdout": "", "stderr": "", "exit_code": 0} | result).encode(),))


async def test_code_is_run_for_the_tenant_of_the_caller(functions: ScriptedHTTPServer) -> None:
    functions.script(answer(stdout="2\n"))

    outcome = await call(code="print(1 + 1)")

    [request] = functions.requests
    assert request.path == "/2015-03-31/functions/stint-sandbox/invocations"
    assert {name.lower(): value for name, value in request.headers.items()}["x-amz-tenant-id"] == "team-a"
    assert json.loads(request.body) == {"code": "print(1 + 1)", "seconds": 60}
    assert outcome == ToolOutcome(content="completed\n[stdout]\n2\n\n[/stdout]")


async def test_an_error_of_the_code_is_a_result(functions: ScriptedHTTPServer) -> None:
    functions.script(answer(stderr="ZeroDivisionError", exit_code=1))

    outcome = await call(code="1/0")

    assert outcome.content == "error\n[stderr]\nZeroDivisionError\n[/stderr]\nThe exit code is 1."
    assert not outcome.error


async def test_files_are_attachments_for_the_user(functions: ScriptedHTTPServer) -> None:
    content = base64.b64encode(b"a,b").decode()
    functions.script(answer(files=[{"name": "table.csv", "content": content}], omitted=["folder"]))

    outcome = await call(code="...")

    assert outcome.metadata[ATTACHMENTS] == [
        {"content": {"uri": f"data:text/csv;base64,{content}"}, "mime_type": "text/csv"}
    ]
    assert "Files for the user: table.csv." in str(outcome.content)
    assert "folder" in str(outcome.content)


async def test_a_limit_that_ended_the_run_is_named(functions: ScriptedHTTPServer) -> None:
    functions.script(answer(ended_by="the time limit of 60 seconds", exit_code=-9, truncated=True))

    outcome = await call(code="while True: pass")

    assert outcome.error
    assert "The run was ended by the time limit of 60 seconds." in str(outcome.content)
    assert "only its beginning is shown" in str(outcome.content)


async def test_a_refusal_says_why(functions: ScriptedHTTPServer) -> None:
    functions.script(answer(refused="Code cannot be run on this machine"))

    outcome = await call(code="1")

    assert (outcome.error, outcome.content) == (True, "Code cannot be run on this machine")


@pytest.mark.parametrize("arguments", [{}, {"code": " "}, {"code": 7}, {"code": "é" * 100_001}])
async def test_code_that_is_missing_or_too_long_is_not_sent(
    functions: ScriptedHTTPServer, arguments: dict[str, Any]
) -> None:
    outcome = await call(**arguments)

    assert outcome.error
    assert functions.requests == []


@pytest.mark.parametrize(
    "reply",
    [
        Reply((b'{"Message": "no"}',), 403, {"x-amzn-errortype": "AccessDeniedException"}),
        Reply((b"[]",)),
        answer(files=[{"name": "a", "content": "%"}]),
    ],
)
async def test_a_function_that_cannot_answer_is_unavailable(functions: ScriptedHTTPServer, reply: Reply) -> None:
    functions.script(reply)

    with pytest.raises(ToolUnavailable, match="code interpreter"):
        await call(code="1")


@pytest.fixture
async def meter() -> AsyncIterator[Meter]:
    """Begin a run that is metered."""
    meter = Meter()
    set_meter(meter)
    yield meter
    set_meter(None)


async def test_the_time_of_code_is_a_cost_of_the_run(functions: ScriptedHTTPServer, meter: Meter) -> None:
    with CLOCK.stop():
        functions.script(Reply((lambda: CLOCK.move(1.5), *answer(stdout="2").parts)))
        await call(code="print(1 + 1)")
        counted = meter.read()

    assert counted.sandbox_milliseconds == 1500
    invocations = 2  # of the function of the run, and of the sandbox
    assert counted.infrastructure_dollars == pytest.approx(invocations * 0.2 / 1e6 + 1.5 * 0.0000133334, abs=1e-9)


async def test_code_ends_before_its_request(functions: ScriptedHTTPServer, meter: Meter) -> None:
    functions.script(answer(), answer())
    now = asyncio.get_running_loop().time()

    for left in (29, 400):
        meter.deadline = now + left
        await call(code="1")
    meter.deadline = now + 2.5
    refused = await call(code="1")

    seconds = [json.loads(request.body)["seconds"] for request in functions.requests]
    assert 26 < seconds[0] <= 27
    assert seconds[1] == 60
    assert (refused.error, "no time left" in str(refused.content)) == (True, True)


async def test_code_without_an_answer_costs_the_longest_run(functions: ScriptedHTTPServer, meter: Meter) -> None:
    started = asyncio.Event()
    loop = asyncio.get_running_loop()
    functions.script(Reply((lambda: loop.call_soon_threadsafe(started.set),), ending="hang"), Reply(status=0))
    run = asyncio.create_task(call(code="while True: pass"))
    await started.wait()

    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    assert meter.read().sandbox_milliseconds == 60_000

    with pytest.raises(ToolUnavailable):
        await call(code="1")
    assert meter.read().sandbox_milliseconds == 120_000


async def test_a_function_that_was_not_invoked_costs_nothing(functions: ScriptedHTTPServer, meter: Meter) -> None:
    functions.script(Reply((b'{"Message": "slow down"}',), 429, {"x-amzn-errortype": "TooManyRequestsException"}))

    assert (await call(code="1")).error

    assert meter.read().sandbox_milliseconds == 0


async def test_a_failed_function_is_an_error_without_its_trace(functions: ScriptedHTTPServer) -> None:
    body = json.dumps({"errorType": "Runtime.ExitError", "errorMessage": "killed"}).encode()
    functions.script(Reply((body,), 200, {"x-amz-function-error": "Unhandled"}))

    outcome = await call(code="1")

    assert (outcome.error, outcome.content) == (True, "The function failed: Runtime.ExitError: killed")


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("", "document-1-2.txt"),
        ("..", "document-1-2.txt"),
        ("x/../..", "document-1-2.txt"),
        ("/.ssh/", "ssh.txt"),
        ("a\\..\\b.csv", "b.csv"),
        ("p\0ss\n\u202e.csv", "p_ss__.csv"),
        ("\ud800.csv", "_.csv"),
        ("E\u0301.TXT", "\u00c9-2.TXT"),
        ("\u4e2d" * 100 + ".csv", "\u4e2d" * 53 + ".csv"),
        ("a" * 2_000 + ".tar.gz", "a" * 160 + ".gz"),
    ],
)
def test_a_name_is_made_that_the_sandbox_accepts(wanted: str, name: str) -> None:
    made = make_name(wanted, "document-1", "text/plain", ["document-1.txt", "\u00e9.txt"])

    assert made == name
    assert is_file_name(made)
