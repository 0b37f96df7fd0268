"""The local Lambda service."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from infra.local.functions import PAYLOAD_LIMIT, PayloadTooLarge, Throttled, UnknownFunction
from infra.local.opt import merge_layers
from tests.runtime.harness import APPS, CORE, RUNTIME_LAYER, Gate, Reader, Start, proxy_event, running, until, with_gate


async def test_a_managed_function_answers_buffered(service: Start) -> None:
    function = await service("plain.handler", wrapper=None)

    first = await function.start({"n": 1}, stream=False)
    answer = json.loads(await first.read())
    again = json.loads(await (await function.start({"n": 2}, stream=False)).read())

    assert answer == {"event": {"n": 1}, "request_id": first.request_id, "pid": answer["pid"]}
    assert again["event"] == {"n": 2}
    assert again["pid"] == answer["pid"]
    assert first.content_type == "application/json"
    assert first.error is None


async def test_a_mangum_app_runs_on_the_managed_runtime(service: Start) -> None:
    function = await service("web.handler", wrapper=None)
    event = proxy_event(path="/v1/where/here", queryStringParameters={"tag": "t"})

    answer = json.loads(await (await function.start(event, stream=False)).read())

    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["name"] == "here"


async def test_a_managed_function_that_raises_is_an_error(service: Start) -> None:
    function = await service("plain.failing", wrapper=None)

    invocation = await function.start({}, stream=False)
    body = await invocation.read()

    assert body == b""
    assert invocation.error
    assert (invocation.error.type, invocation.error.message) == ("LookupError", "no luck")


async def test_a_traceback_of_the_managed_runtime_is_logged_as_lines_with_plain_spaces(service: Start) -> None:
    function = await service("plain.failing", wrapper=None)

    await (await function.start({}, stream=False)).read()
    await function.functions.stop()

    assert "Traceback (most recent call last):" in function.lines
    assert any(line.startswith("  File ") and line.endswith("in failing") for line in function.lines)
    assert not {"\r", "\N{NO-BREAK SPACE}"} & set("".join(function.lines))


async def test_a_buffered_answer_over_6_mb_is_an_error(service: Start) -> None:
    managed = await service("plain.large", wrapper=None)
    streaming = await service()

    large = await managed.start({}, stream=False)
    flood = await streaming.start(proxy_event(path="/flood"), stream=False)
    streamed = await streaming.start(proxy_event(path="/flood"), stream=True)
    await large.read()
    await flood.read()

    assert large.error
    assert large.error.type == "Function.ResponseSizeTooLarge"
    assert flood.error
    assert flood.error.type == "Function.ResponseSizeTooLarge"
    assert len(await streamed.read()) > 200 * 64 * 1024
    assert streamed.error is None


async def test_a_time_out_kills_and_replaces_the_process(service: Start) -> None:
    function = await service("plain.slow", wrapper=None, timeout=1, concurrency=1)

    first = await function.start({}, stream=False)
    second = await function.start({}, stream=False)

    for invocation in (first, second):
        assert invocation.error
        assert invocation.error.type == "Sandbox.Timedout"
        assert (
            f"RequestId: {invocation.request_id} Error: Task timed out after 1.00 seconds" == invocation.error.message
        )


async def test_calls_beyond_the_limit_wait_once_and_are_then_throttled(service: Start, gate: Gate) -> None:
    function = await service(concurrency=1)
    busy = await function.start(with_gate(proxy_event(path="/steps"), gate))
    waiting = asyncio.create_task(function.json(proxy_event()))
    await asyncio.sleep(0)

    with pytest.raises(Throttled):
        await function.start(proxy_event())

    for index in range(3):
        await gate.open(f"step {index}")
    assert (await waiting)["path"] == "/echo"
    assert busy.ended


async def test_calls_at_once_get_a_process_each(service: Start, gate: Gate) -> None:
    function = await service(concurrency=2)

    busy = await function.start(with_gate(proxy_event(path="/steps"), gate))
    await gate.reached("step 0")
    seen = await function.json(proxy_event())
    for index in range(3):
        await gate.open(f"step {index}")
    await busy.read()
    again = await function.json(proxy_event())

    assert busy.error is None
    assert again["path"] == seen["path"] == "/echo"


async def test_a_process_that_died_idle_is_replaced(service: Start) -> None:
    function = await service()
    pid = (await function.json(proxy_event()))["pid"]

    os.kill(pid, signal.SIGKILL)
    await until(lambda: pid not in function.functions.processes("f"))

    assert (await function.json(proxy_event()))["pid"] != pid


async def test_the_environment_is_lambdas_and_the_functions_own(
    service: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARENT_SECRET", "1")
    function = await service(environment={"TABLE_NAME": "t"})

    names = set((await function.json(proxy_event()))["environment"])

    of_wrapper = {"MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"}
    assert of_wrapper <= names
    assert names - {"LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_", "_X_AMZN_TRACE_ID"} - of_wrapper == {
        "AWS_DEFAULT_REGION",
        "AWS_EXECUTION_ENV",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
        "AWS_LAMBDA_FUNCTION_NAME",
        "AWS_LAMBDA_FUNCTION_VERSION",
        "AWS_LAMBDA_INITIALIZATION_TYPE",
        "AWS_LAMBDA_LOG_GROUP_NAME",
        "AWS_LAMBDA_LOG_STREAM_NAME",
        "AWS_LAMBDA_RUNTIME_API",
        "AWS_REGION",
        "LAMBDA_RUNTIME_DIR",
        "LAMBDA_TASK_ROOT",
        "LANG",
        "PATH",
        "PYTHONPATH",
        "TABLE_NAME",
        "TZ",
        "_HANDLER",
    }


async def test_asynchronous_invocations_are_tried_three_times(service: Start) -> None:
    function = await service("plain.failing", wrapper=None)

    request_id = await function.functions.invoke_async("f", b"{}")

    assert len(request_id) == 36
    await until(lambda: sum("failed: no luck" in line for line in function.lines) == 3)
    assert function.lines.count("attempted") == 3


async def test_unknown_names_and_large_events_are_refused(service: Start) -> None:
    function = await service()

    with pytest.raises(UnknownFunction, match="other; there are f"):
        await function.functions.invoke("other", b"{}", stream=False)
    with pytest.raises(PayloadTooLarge):
        await function.functions.invoke("f", bytes(PAYLOAD_LIMIT + 1), stream=False)


async def test_a_missing_wrapper_is_an_error_and_no_hang(service: Start) -> None:
    function = await service(wrapper="/opt/missing")

    _, invocation = await function.call(proxy_event())

    assert invocation.error
    assert invocation.error.type == "Runtime.InvalidEntrypoint"
    assert "/opt/missing" in invocation.error.message


async def test_stop_leaves_no_process_behind(service: Start, gate: Gate) -> None:
    function = await service()
    pids = await function.json(proxy_event(path="/spawn"))
    reader = Reader(await function.start(with_gate(proxy_event(path="/steps"), gate)))
    await reader.until(lambda data: data.endswith(b" "))

    await function.functions.stop()

    await until(lambda: not any(map(running, pids)))
    await reader.rest()


ROOT = Path(__file__).parents[2]
OWNER = """
import asyncio, json, sys
from pathlib import Path
from infra.local.functions import Functions, FunctionSpec

async def main():
    code, layer, core, event = sys.argv[1:]
    spec = FunctionSpec("f", "streams.app", Path(code), (Path(layer),), {"PYTHONPATH": core}, 20, 128,
                        "/opt/stint-runtime", Path(sys.executable))
    functions = Functions([spec], concurrency=1, log=lambda name, line: None)
    invocation = await functions.invoke("f", event.encode(), stream=True)
    print((await invocation.read()).split(bytes(8))[1].decode(), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_a_hard_killed_owner_leaves_nothing_behind(tmp_path: Path) -> None:
    event = json.dumps(proxy_event(path="/spawn"))
    command = (sys.executable, "-c", OWNER, str(APPS), str(RUNTIME_LAYER), str(CORE), event)
    owner = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert owner.stdout
    pids = json.loads(await owner.stdout.readline())
    folders = os.listdir(tmp_path)

    owner.kill()
    await owner.wait()

    assert len(folders) == 1
    await until(lambda: not any(map(running, pids)) and not any(tmp_path.iterdir()))


def test_a_later_layer_wins_and_folders_are_merged(tmp_path: Path) -> None:
    for layer, name in (("one", "a.py"), ("two", "b.py"), ("one", "same.py"), ("two", "same.py")):
        folder = tmp_path / layer / "python" / "lib"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(layer)
    (tmp_path / "two" / "tool").write_text("tool")

    merge_layers([tmp_path / "one", tmp_path / "two"], tmp_path / "opt")

    merged = tmp_path / "opt" / "python" / "lib"
    assert {path.name: path.read_text() for path in merged.iterdir()} == {
        "a.py": "one",
        "b.py": "two",
        "same.py": "two",
    }
    assert (tmp_path / "opt" / "tool").read_text() == "tool"
