"""The example of docs/automations.md, run as printed, and a schedule of `make run` that begins a session."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from infra.local.engine import ROOT
from openai import DefaultHttpxClient, OpenAI
from tests.servers.ports import free_port
from tests.system.printed_commands import Desk, read_blocks

BLOCKS = read_blocks(ROOT / "docs" / "automations.md")
LONGEST = 150
"""Seconds in which a schedule of the next minute has begun a session."""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with Desk(tmp_path_factory.mktemp("automations") / "stint", free_port()) as desk:
        yield desk


def test_an_automation_runs_as_the_page_shows(desk: Desk) -> None:
    assert [block.language for block in BLOCKS] == ["sh", "python"]
    for block in BLOCKS:
        desk.run(block)


def test_a_schedule_begins_a_session(desk: Desk) -> None:
    content: Any = [{"type": "input_text", "text": "say: Now"}]
    target: Any = {
        "type": "new_session",
        "environment": {"type": "none"},
        "agent": {"model": "scripted/demo"},
        "input": [{"role": "user", "content": content}],
    }
    url = f"http://127.0.0.1:{desk.port}/v1"
    with OpenAI(base_url=url, api_key="none", http_client=DefaultHttpxClient(trust_env=False)) as client:
        automations = client.beta.agents.automations
        made = automations.create(
            type="periodic", name="Often", expression="* * * * *", timezone="Europe/Oslo", target=target
        )
        runs: list[Any] = []
        deadline = time.monotonic() + LONGEST
        while not runs and time.monotonic() < deadline:
            time.sleep(1)
            runs = [run for run in automations.invocations.list(made.id).data if run.status != "queued"]
        automations.delete(made.id)

        assert [run.status for run in runs] == ["completed"]
        assert (runs[0].source.type, runs[0].scheduled_at % 60) == ("automation", 0)
        assert client.beta.agents.sessions.retrieve(runs[0].session_id).id == runs[0].session_id
