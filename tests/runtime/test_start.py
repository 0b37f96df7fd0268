"""How a runtime process starts and ends."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from infra.local.opt import merge_layers
from tests.runtime.harness import RUNTIME_LAYER, Service, Start, proxy_event, until

Code = Callable[[str], Path]


@pytest.mark.parametrize(
    ("source", "handler", "error_type", "message"),
    [
        ("import missing_package", "app.app", "Runtime.ImportModuleError", "No module named 'missing_package'"),
        ("def app(:", "app.app", "Runtime.UserCodeSyntaxError", "Unable to import module 'app'"),
        ("raise KeyError('setting')", "app.app", "KeyError", "'setting'"),
        ("import sys; sys.exit(0)", "app.app", "SystemExit", "Unable to import module 'app'"),
        ("other = 1", "app.app", "Runtime.HandlerNotFound", "'app' is missing in module 'app'"),
        ("app = 1", "app.app", "Runtime.HandlerNotFound", "or not an ASGI app"),
        ("app = 1", "app", "Runtime.MalformedHandlerName", "Bad handler 'app'"),
    ],
)
async def test_an_init_failure_is_told_to_the_caller(
    service: Start, code: Code, source: str, handler: str, error_type: str, message: str
) -> None:
    function = await service(handler, code=code(source))

    async with asyncio.timeout(120):
        payload, invocation = await function.call(proxy_event())

    assert payload == b""
    assert invocation.error
    assert invocation.error.type == error_type
    assert message in invocation.error.message
    assert len(function.errors()) == 1


async def test_a_process_that_exits_at_once_is_an_error(service: Start, code: Code) -> None:
    function = await service("app.app", code=code("import os; os._exit(3)"))

    _, invocation = await function.call(proxy_event())

    assert invocation.error
    assert invocation.error.type == "Runtime.ExitError"
    assert "exit status 3" in invocation.error.message


async def test_a_handler_may_lie_in_a_folder(service: Start, code: Code) -> None:
    folder = code("")
    (folder / "nested").mkdir()
    shutil.copy(Path(__file__).parent / "apps" / "streams.py", folder / "nested" / "streams.py")
    function = await service("nested/streams.app", code=folder)

    assert (await function.json(proxy_event()))["path"] == "/echo"


async def test_sigterm_ends_an_idle_process_cleanly(service: Start) -> None:
    function = await service(concurrency=1)
    pid = (await function.json(proxy_event()))["pid"]

    os.kill(pid, signal.SIGTERM)
    await until(lambda: pid not in function.functions.processes("f"))

    assert function.lines == []
    assert (await function.json(proxy_event()))["pid"] != pid


async def test_sigterm_during_an_invocation_reports_it(service: Start) -> None:
    function = await service(concurrency=1)
    pid = (await function.json(proxy_event()))["pid"]

    invocation = await function.start(proxy_event(path="/hang-later"))
    os.kill(pid, signal.SIGTERM)
    payload = await invocation.read()

    assert payload.endswith(b"first last word")
    assert invocation.error
    assert invocation.error.type == "Stopped"


async def test_the_path_is_the_one_of_the_managed_runtime(service: Start, tmp_path: Path) -> None:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    layer = tmp_path / "layer"
    (layer / "python" / "lib" / version / "site-packages").mkdir(parents=True)
    function = await service(layers=(layer, RUNTIME_LAYER), environment={"PYTHONPATH": "/extra"})

    seen = await function.json(proxy_event())

    opt = next(Path(entry).parent for entry in seen["sys_path"] if entry.endswith("/opt/python"))
    start = seen["sys_path"].index(f"{opt}/python/lib/{version}/site-packages")
    assert seen["sys_path"][start - 1].endswith("/tests/runtime/apps")
    assert seen["sys_path"][start + 1] == f"{opt}/python"
    assert seen["sys_path"][start + 2].endswith("/runtime")
    assert seen["sys_path"][start + 3] == "/extra"


def test_the_wrapper_takes_the_version_from_the_interpreters_name(tmp_path: Path) -> None:
    interpreter = tmp_path / "python9.9"
    interpreter.write_text('#!/bin/sh\necho "$PYTHONPATH" "$@"\n')
    interpreter.chmod(0o755)
    opt = tmp_path / "opt"
    merge_layers([RUNTIME_LAYER], opt)

    command = [str(opt / "stint-runtime"), str(interpreter), "/var/runtime/bootstrap.py"]
    environment = {"LAMBDA_TASK_ROOT": "/var/task", "LAMBDA_RUNTIME_DIR": "/var/runtime"}
    output = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    path = f"/var/task:{opt}/python/lib/python9.9/site-packages:{opt}/python:/var/runtime"
    assert output == f"{path} -m stint_runtime\n"


async def test_restore_hooks_run_around_the_snapshot(service: Start, code: Code) -> None:
    source = """
import snapshot_restore_py as hooks
hooks.register_before_snapshot(lambda: print("before", flush=True))
hooks.register_after_restore(lambda: print("after", flush=True))
from streams import app
"""
    folder = code(source)
    shutil.copy(Path(__file__).parent / "apps" / "streams.py", folder)
    function = await service("app.app", code=folder, environment={"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"})

    await function.json(proxy_event())

    assert function.lines == ["before", "after"]


async def test_a_failing_restore_hook_ends_the_process(service: Start, code: Code) -> None:
    source = """
import snapshot_restore_py as hooks
hooks.register_before_snapshot(lambda: 1 / 0)
app = print
"""
    environment = {"AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start"}
    function: Service = await service("app.app", code=code(source), environment=environment)

    _, invocation = await function.call(proxy_event())

    assert invocation.error
    assert invocation.error.type == "ZeroDivisionError"


STREAMS = "from streams import app as streams\n"


@pytest.mark.parametrize(
    ("source", "started"),
    [
        (
            """
said = []
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        said.append((await receive())["type"])
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await streams({**scope, "path": "/echo/" + "".join(said)}, receive, send)
""",
            "/echo/lifespan.startup",
        ),
        (
            """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await streams(scope, receive, send)
""",
            "/echo",
        ),
    ],
    ids=["an app that starts", "an app that does not know of it"],
)
async def test_the_app_is_told_of_the_start_before_the_first_event(
    service: Start, code: Code, source: str, started: str
) -> None:
    folder = code(STREAMS + source)
    shutil.copy(Path(__file__).parent / "apps" / "streams.py", folder)
    function = await service("app.app", code=folder)

    assert (await function.json(proxy_event()))["path"] == started
    assert function.errors() == []


async def test_an_app_that_fails_to_start_is_logged_and_gets_its_events(service: Start, code: Code) -> None:
    source = """
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.failed", "message": "no such table"})
        return
    await streams(scope, receive, send)
"""
    folder = code(STREAMS + source)
    shutil.copy(Path(__file__).parent / "apps" / "streams.py", folder)
    function = await service("app.app", code=folder)

    assert (await function.json(proxy_event()))["path"] == "/echo"
    assert [line["message"] for line in function.errors()] == ["no such table"]
