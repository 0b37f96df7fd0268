import asyncio
import time

from tests.listed_runs import put_run
from tests.services.cli.test_key_commands import Shell, shell
from tests.store.conftest import Cloud

from stint.domain.ids import new_id, new_name
from stint.domain.running_runs import RunningRun

__all__ = ["shell"]


async def put(cloud: Cloud, tenant: str) -> tuple[RunningRun, RunningRun]:
    now = int(time.time())
    turn = RunningRun(
        kind="turn",
        id=new_id(),
        agent_id=new_id(),
        session_id=new_id(),
        model="scripted/demo",
        key_id="0" * 32,
        began_at=now,
        until=now + 60,
    )
    conversation = new_name("conv")
    response = RunningRun(
        kind="response", id=new_name("resp"), conversation_id=conversation, model="m", began_at=now, until=now + 60
    )
    for run in (turn, response):
        await put_run(cloud.store.running_runs, tenant, run)
    return turn, response


def test_running_runs_are_listed_with_the_ids_that_stops_need(shell: Shell, engine_cloud: Cloud) -> None:
    turn, response = asyncio.run(put(engine_cloud, shell.tenant))

    lines = shell.text("runs", "list", "--tenant", shell.tenant).splitlines()
    [found] = shell.json("runs", "list", "--tenant", shell.tenant, "--key", "0" * 32)

    assert [line.split()[:3] for line in lines[1:]] == [
        ["response", response.id, "m"],
        ["turn", turn.id, "scripted/demo"],
    ]
    assert str(turn.session_id) in lines[2]
    assert found["id"] == turn.id
    for name, value in (("--session", turn.session_id), ("--agent", turn.agent_id)):
        assert [each["id"] for each in shell.json("runs", "list", "--tenant", shell.tenant, name, str(value))] == [
            turn.id
        ]
    assert f"Stopped turn {turn.id}" in shell.text("stop", "turn", turn.id, "--tenant", shell.tenant)


def test_an_idle_tenant_has_no_runs(shell: Shell) -> None:
    assert "Nothing of the tenant" in shell.text("runs", "list", "--tenant", shell.tenant)
    assert shell.json("runs", "list", "--tenant", shell.tenant) == []
