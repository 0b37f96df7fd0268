"""SystemExit in a task of the app: it leaves the event loop, which goes on for the invocations."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.runtime.harness import Start, proxy_event, split, until
from tests.runtime.many import many


@pytest.mark.parametrize(
    ("path", "levels", "running"),
    [
        ("/leave", ["ERROR", "WARNING"], 1),
        ("/leave-in-group", ["WARNING", "ERROR"], 2),
        ("/leave-in-gather", ["WARNING", "ERROR"], 2),
    ],
)
async def test_it_fails_its_invocation_and_ends_the_process_after_the_other_streams(
    path: str, levels: list[str], running: int
) -> None:
    async with many(3) as runtime:
        other, gate = await runtime.start("/two")
        await gate.reached("between")
        leaving, _ = await runtime.start(path)
        first = await leaving.read()
        await until(lambda: runtime.api.leaving)
        ended = runtime.process.returncode is not None
        await gate.open("between")

        assert split(first)[1] == b"bye"
        assert leaving.error
        assert leaving.error.type == "SystemExit"
        assert not ended
        assert runtime.api.polls == 0
        assert split(await other.read())[1] == b"one two"
        assert other.error is None
        assert await runtime.exit() == 1
        logged = {line["level"]: line["message"] for line in runtime.lines()}
        assert list(logged) == levels
        assert logged["WARNING"] == f"The process ends after its {running} running invocations."


async def test_it_ends_a_process_of_one_event_at_a_time(service: Start) -> None:
    function = await service(concurrency=1)

    pid = (await function.json(proxy_event()))["pid"]
    payload, invocation = await function.call(proxy_event(path="/leave-in-group"))
    seen = await function.json(proxy_event())

    assert split(payload)[1] == b"bye"
    assert invocation.error
    assert invocation.error.type == "SystemExit"
    assert seen["pid"] != pid


@pytest.mark.parametrize("at_once", [1, 3])
async def test_in_a_task_that_nobody_awaits_it_ends_the_process_after_the_streams(at_once: int) -> None:
    async with many(at_once) as runtime:
        stream, gate = await runtime.start("/leave-unawaited")
        await gate.open("leave")
        await gate.open("answer")

        assert split(await stream.read())[1] == b"first second"
        assert stream.error is None
        assert await runtime.exit() == 1
        assert runtime.api.polls == 0


async def test_in_an_idle_process_it_withdraws_the_requests_for_events() -> None:
    async with many(3) as runtime:
        stream, gate = await runtime.start("/leave-unawaited")
        await gate.open("answer")
        await stream.read()
        await runtime.polls(3)
        await gate.open("leave")

        assert await runtime.exit() == 1
        assert runtime.api.polls == 0
        assert "The process ends after its 0 running invocations." in runtime.output


async def test_an_idle_process_of_one_event_at_a_time_serves_the_event_that_it_requested() -> None:
    async with many(1) as runtime:
        stream, gate = await runtime.start("/leave-unawaited")
        await gate.open("answer")
        await stream.read()
        await runtime.polls(1)
        await gate.open("leave")
        last, _ = await runtime.start("/cookies")

        assert split(await last.read())[1] == b"\x00\xff"
        assert last.error is None
        assert await runtime.exit() == 1
        assert "A task of the app raised SystemExit." in runtime.output


async def test_in_the_startup_of_the_app_it_ends_the_process(service: Start, code: Callable[[str], Path]) -> None:
    function = await service("app.app", code=code("import sys\nasync def app(scope, receive, send): sys.exit(0)"))

    _, invocation = await function.call(proxy_event())

    assert invocation.error
    assert invocation.error.type == "Runtime.ExitError"
    assert "exit status 1" in invocation.error.message
    assert "A task of the app raised SystemExit." in function.lines[0]
