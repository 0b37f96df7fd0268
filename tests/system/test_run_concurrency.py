"""How many processes `make run` uses for requests at the same time."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.system.run_process import Run
from tests.system.test_run import create_agent

# Each word takes a minute: a stream stays open until the test leaves it.
SHELL = {"STINT_SCRIPTED_WORD_SECONDS": "60"}


@pytest.fixture(params=["shared", "lambda"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Run]:
    run = Run(tmp_path, 0, "--concurrency", request.param, shell=SHELL)
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


def streaming_processes(run: Run) -> int:
    """Return the number of function processes that stream."""
    table = subprocess.run(["ps", "-ww", "-eo", "ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 1) for line in table.splitlines()]
    return sum(int(parent) == run.process.pid and "stint_runtime" in args for parent, args in rows)


async def open_streams(run: Run, number: int) -> int:
    """Open streamed turns in sessions of their own, and return the number of processes while all are open."""
    url = f"http://127.0.0.1:{run.port}"
    agent = await asyncio.to_thread(create_agent, url)
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=f"{url}/v1/agents/{agent}", timeout=120, trust_env=False, limits=limits) as c:

        async def open_stream() -> httpx.Response:
            session = (await c.post("/session", json={"session_name": "s"})).json()["session_id"]
            turn = {"messages": [{"role": "user", "content": "say: one two"}], "stream": True}
            response = await c.send(c.build_request("POST", f"/session/{session}/turn", json=turn), stream=True)
            assert response.status_code == 200
            await anext(response.aiter_raw())
            return response

        streams = await asyncio.gather(*(open_stream() for _ in range(number)))
        processes = streaming_processes(run)
        await asyncio.gather(*(stream.aclose() for stream in streams))
    return processes


async def test_streams_share_a_process_unless_concurrency_is_that_of_lambda(run: Run) -> None:
    shared = "shared" in str(run.process.args)

    processes = await open_streams(run, 20 if shared else 3)

    assert processes == (1 if shared else 3)


async def test_more_buffered_requests_than_processes_wait(tmp_path: Path) -> None:
    run = Run(tmp_path, 0)
    run.read_until("Ctrl-C stops")
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{run.port}", timeout=120, trust_env=False) as client:
            answers = await asyncio.gather(*(client.get("/v1/agents") for _ in range(40)))
    finally:
        run.stop()

    assert {answer.status_code for answer in answers} == {200}


def test_another_concurrency_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path, 0, "--concurrency", "many")

    assert run.wait() == 2
    assert "invalid choice: 'many' (choose from " in "".join(run.lines)
