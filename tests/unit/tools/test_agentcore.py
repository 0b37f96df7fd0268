"""Runs of code in Bedrock AgentCore, with botocore's client against a server on loopback."""

import asyncio
import base64
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.clock import CLOCK
from tests.script_model import until
from tests.servers.agentcore import INTERPRETER, INVOKE, AgentCoreServer, result
from tests.servers.converse_stream import EVENT_STREAM, error, exception
from tests.servers.scripted_http import Reply

from stint.bootstrap.defaults import providers
from stint.bootstrap.tool_providers import make_code_runner
from stint.domain.errors import ToolUnavailable
from stint.domain.prices import parse_prices
from stint.metering import Meter, set_deadline, set_meter
from stint.settings import Settings
from stint.tools.code_interpreter.agentcore import AgentCore
from stint.tools.code_interpreter.runs import MARGIN_SECONDS, RunResult


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AgentCoreServer]:
    """Yield a server to which the client of AgentCore sends its requests."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with AgentCoreServer() as made:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_AGENTCORE", made.url)
        yield made
        assert made.sessions == {}


async def run(code: str, **files: bytes) -> RunResult:
    return await AgentCore(INTERPRETER).run(code, {name.replace("_", "."): body for name, body in files.items()})


def contents_of(outcome: RunResult) -> dict[str, bytes]:
    return {file.name: base64.b64decode(file.content) for file in outcome.files}


async def test_code_reads_and_writes_files_in_a_session_of_its_own(server: AgentCoreServer) -> None:
    code = """
import os, sys
print(open('in.csv').read(), sorted(os.listdir()))
print('warning', file=sys.stderr)
open('out.bin', 'wb').write(b'\\xff\\x00')
open('in.csv', 'a').write('!')
os.remove('old.txt')
os.mkdir('folder')
open('.hidden', 'w').write('x')
"""

    first = await run(code, in_csv=b"1,2", old_txt=b"old", same_txt=b"same")
    second = await run("import os; print(os.listdir())")

    assert first.stdout == "1,2 ['in.csv', 'log', 'old.txt', 'same.txt']\n"
    assert (first.stderr, first.exit_code, first.ended_by) == ("warning\n", 0, None)
    assert contents_of(first) == {"in.csv": b"1,2!", "out.bin": b"\xff\x00"}
    assert (first.removed, first.omitted) == (["old.txt"], ["folder"])
    assert second == RunResult(stdout="['log']\n")
    assert server.started == 2


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("prices", "dollars"), [("", 0.0), ('{"infrastructure": {"agentcore_seconds": 0.00002}}', 0.00004)]
)
async def test_the_time_of_a_session_costs_its_price_if_there_is_one(prices: str, dollars: float) -> None:
    meter = Meter(prices=parse_prices(prices))
    set_meter(meter)
    with CLOCK.stop():
        before = meter.read().infrastructure_dollars
        running = asyncio.create_task(run("print(1)"))
        await asyncio.sleep(0)
        CLOCK.move(2)
        await running
        counted = meter.read()
    set_meter(None)

    assert counted.sandbox_milliseconds == 2000
    assert counted.infrastructure_dollars == pytest.approx(before + dollars)


async def test_an_error_of_the_code_is_a_result(server: AgentCoreServer) -> None:
    outcome = await run("1 / 0")

    assert (outcome.exit_code, outcome.refused) == (1, None)
    assert "ZeroDivisionError" in outcome.stderr


async def test_output_and_files_are_bounded(server: AgentCoreServer) -> None:
    code = """
print('\u00e4' * 60_000)
open('a', 'wb').write(b'x' * 3_500_000)
open('b', 'wb').write(b'x')
[open(f'n{each:02}', 'w') for each in range(25)]
open('bad\\nname', 'w')
"""

    outcome = await run(code)

    assert (len(outcome.stdout.encode()), outcome.truncated) == (100_000, True)
    assert list(contents_of(outcome)) == ["a", *(f"n{each:02}" for each in range(19))]
    assert outcome.omitted == ["b", "bad\\nname", *(f"n{each}" for each in range(19, 25))]


async def test_the_text_of_a_result_is_the_output_without_a_structured_one(server: AgentCoreServer) -> None:
    said = [{"content": [{"type": "text", "text": text}], "isError": text == "c"} for text in "abc"]
    server.overrides["executeCode"] = lambda: result(*said)

    outcome = await run("1")

    assert (outcome.stdout, outcome.stderr, outcome.exit_code) == ("ab", "c", 1)


async def until_called(server: AgentCoreServer, name: str) -> None:
    await until(lambda: any(each.path == INVOKE and each.json()["name"] == name for each in server.requests))


def is_stopped(server: AgentCoreServer) -> bool:
    return server.sessions == {} and server.started > 0


def request_ends_in(seconds: float) -> None:
    set_meter(Meter())
    set_deadline(asyncio.get_running_loop().time() + seconds)


@pytest.fixture
def silence() -> Iterator[threading.Event]:
    """Yield what a reply waits for in silence, until the test ends."""
    made = threading.Event()
    yield made
    made.set()
    set_meter(None)


@pytest.mark.parametrize("late", ["before", "within"])
@pytest.mark.parametrize(("request_seconds", "told"), [(None, "60"), (20, r"1\d"), (300, "60")])
async def test_a_run_that_takes_too_long_is_ended_and_its_session_is_stopped(
    server: AgentCoreServer, silence: threading.Event, late: str, request_seconds: float | None, told: str
) -> None:
    begun = result({"content": []}).parts
    reply = Reply((*begun, silence), headers=EVENT_STREAM)
    server.overrides["executeCode"] = lambda: replace(reply, before=silence) if late == "before" else reply
    if request_seconds is not None:
        request_ends_in(request_seconds)

    running = asyncio.create_task(run("while True: pass"))
    await until_called(server, "executeCode")
    CLOCK.move(60 if request_seconds is None else min(request_seconds - MARGIN_SECONDS, 60))
    outcome = await running

    assert outcome.exit_code == -1
    assert re.fullmatch(f"the time limit of {told} seconds", outcome.ended_by or "")
    assert is_stopped(server)


async def test_code_that_prints_all_the_time_is_ended_too(server: AgentCoreServer, silence: threading.Event) -> None:
    printed = result({"content": [{"type": "text", "text": "."}]}).parts
    server.overrides["executeCode"] = lambda: Reply((*printed, 0.01) * 6_000, headers=EVENT_STREAM)
    request_ends_in(20)

    running = asyncio.create_task(run("while True: print('.')"))
    await until_called(server, "executeCode")
    CLOCK.move(18)
    outcome = await running

    assert re.fullmatch(r"the time limit of 1\d seconds", outcome.ended_by or "")
    assert is_stopped(server)
    assert await asyncio.to_thread(server.requests[-2].left.wait, 30)


async def test_the_session_of_a_cancelled_run_is_stopped(server: AgentCoreServer, silence: threading.Event) -> None:
    server.overrides["executeCode"] = lambda: Reply(before=silence)
    running = asyncio.create_task(run("while True: pass"))
    await until_called(server, "executeCode")

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert is_stopped(server)


async def test_a_session_that_starts_too_late_is_stopped_at_once(
    server: AgentCoreServer, silence: threading.Event
) -> None:
    def start_late() -> Reply:
        del server.overrides["start"]
        return replace(server.start({"sessionTimeoutSeconds": 180}), before=silence)

    server.overrides["start"] = start_late
    request_ends_in(20)
    running = asyncio.create_task(run("print(1)"))
    await until(lambda: server.sessions)
    CLOCK.move(18)

    outcome = await running
    silence.set()
    await until(lambda: not server.sessions)

    assert outcome.refused == "The code could not be run (TimeoutError). Try again later."


async def test_a_request_without_time_starts_no_session(server: AgentCoreServer) -> None:
    request_ends_in(2.5)

    outcome = await run("print(1)")

    set_meter(None)
    assert outcome.refused == "The code did not run, because the request has no time left for it."
    assert server.requests == []


@pytest.mark.parametrize("name", ["start", "writeFiles", "executeCode", "listFiles", "readFiles"])
async def test_a_failure_that_may_pass_is_an_answer_to_the_model(server: AgentCoreServer, name: str) -> None:
    server.overrides[name] = lambda: error(429, "ThrottlingException", "secret details")

    outcome = await run("open('made', 'w')", given=b"x")

    assert outcome.refused == "The code could not be run (ThrottlingException). Try again later."


async def test_a_failure_in_a_stream_is_an_answer_to_the_model(server: AgentCoreServer) -> None:
    server.overrides["executeCode"] = lambda: Reply(
        (exception("internalServerException", "secret details"),), headers=EVENT_STREAM
    )

    assert (await run("1")).refused == "The code could not be run (internalServerException). Try again later."


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException", "ValidationException"])
async def test_an_interpreter_that_cannot_be_used_is_unavailable(server: AgentCoreServer, code: str) -> None:
    server.overrides["start"] = lambda: error(403, code, "secret details")

    with pytest.raises(ToolUnavailable, match=rf"AgentCore cannot be used \({code}\)") as failed:
        await run("1")

    assert "secret" not in failed.value.message


async def test_files_that_cannot_be_written_stop_the_run(server: AgentCoreServer) -> None:
    server.overrides["writeFiles"] = lambda: result(
        {"content": [{"type": "text", "text": "No space left"}], "isError": True}
    )

    outcome = await run("print(1)", given=b"x")

    assert outcome.refused == "The files could not be copied to the code: No space left"


async def test_a_session_that_cannot_be_stopped_ends_by_itself(server: AgentCoreServer) -> None:
    server.overrides["stop"] = lambda: error(500, "InternalServerException", "no")

    outcome = await run("print(1)")

    [start] = [json.loads(each.body) for each in server.requests if each.path.endswith("/start")]
    assert (outcome.stdout, start["sessionTimeoutSeconds"]) == ("1\n", 180)


def test_the_setting_chooses_the_interpreter() -> None:
    settings = Settings(agentcore_interpreter=INTERPRETER, sandbox_function="sandbox")

    rows = [each for each in providers(settings).data if each.provider_id == "code-interpreter"]

    assert isinstance(make_code_runner(settings), AgentCore)
    assert [(row.provider_type, row.config) for row in rows] == [
        ("remote::bedrock-agentcore", {"code_interpreter": INTERPRETER})
    ]
