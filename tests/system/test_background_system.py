"""Responses in the background through the whole system, whose worker dies."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from infra.local.engine import ROOT
from tests.system.background import System, eventually, running_system

MODEL = "scripted/demo"


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("background")) as system:
        yield system


@pytest.fixture(scope="module")
def mcp_url() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.servers.mcp_server"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdout
    yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    process.kill()
    process.communicate()


def calls(mcp_url: str) -> dict[str, int]:
    stats: dict[str, int] = httpx.get(f"{mcp_url}/stats", trust_env=False, timeout=120).json()
    return stats


def hosted(mcp_url: str) -> Any:
    return {"type": "mcp", "server_label": "sums", "server_url": f"{mcp_url}/mcp", "require_approval": "never"}


def test_a_model_that_takes_long_is_stopped(system: System) -> None:
    queued = system.client.responses.create(model=MODEL, input="slow: 600", background=True)
    system.wait_for(queued.id, "in_progress")

    cancelled = system.client.responses.cancel(queued.id)
    lines = eventually(lambda: system.lines(queued.id), lambda lines: '"route":"response"' in "".join(lines), 30)

    assert cancelled.status == "cancelled"
    assert lines
    assert system.client.responses.retrieve(queued.id).status == "cancelled"


def test_a_worker_that_is_killed_is_followed_by_another_that_does_nothing_twice(system: System, mcp_url: str) -> None:
    steps = 'call: add {"a": 1, "b": 2}\ncall: sleep {"seconds": 3}'
    events: list[Any] = []
    killed = False
    with system.client.responses.create(
        model=MODEL, input=steps, background=True, stream=True, tools=[hosted(mcp_url)]
    ) as stream:
        for event in stream:
            events.append(event)
            if event.type == "response.mcp_call.completed" and not killed:
                eventually(lambda: calls(mcp_url), lambda stats: stats.get("sleeping", 0) > 0, 60)
                system.kill_workers()
                killed = True

    done = system.client.responses.retrieve(events[0].response.id)
    assert killed
    assert events[-1].type == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert done.status == "completed"
    assert [item.type for item in done.output] == ["mcp_list_tools", "mcp_call", "mcp_call", "message"]
    assert calls(mcp_url)["add"] == 1
    closed = [event.item for event in events if event.type == "response.output_item.done"]
    interrupted = [item for item in closed if getattr(item, "status", None) == "incomplete"]
    assert [(item.type, getattr(item, "status", None)) for item in closed if item not in interrupted] == [
        ("mcp_list_tools", None),
        ("mcp_call", "completed"),
        ("mcp_call", "failed"),  # it was sent, and is not repeated, since it may have taken effect
        ("message", "completed"),
    ]
    # Each later attempt closes the call that it found open. A worker without a processor for 3 s loses its lease, too.
    assert {(item.type, item.name) for item in interrupted} == {("mcp_call", "sleep")}
    assert len(interrupted) < system.attempts(done.id)
    assert "was sent and may have taken effect" in str(done.output[2])


def test_a_worker_that_is_killed_is_noticed_by_whoever_polls(system: System) -> None:
    queued = system.client.responses.create(model=MODEL, input="slow: 2\nsay: At last.", background=True)
    system.wait_for(queued.id, "in_progress")

    system.kill_workers()
    done = system.wait_for(queued.id)

    assert done.status == "completed"
    assert done.output_text == "At last."
    assert system.attempts(queued.id) == 2


def test_a_response_whose_worker_dies_three_times_has_failed(system: System) -> None:
    """Its message is among the dead letters."""
    queued = system.client.responses.create(model=MODEL, input="slow: 60", background=True)

    for attempt in (1, 2, 3):
        eventually(lambda: system.attempts(queued.id), attempt.__eq__, 60)
        system.kill_workers()
    # The kills may also end the worker of an earlier response's second message, which is then a dead letter, too.
    dead = system.receive("WorkDeadLettersUrl", queued.id, within=60)
    done = system.wait_for(queued.id, "failed")

    assert json.loads(dead["Body"])["response_id"] == queued.id
    assert done.error is not None
    assert "started 3 times" in done.error.message
