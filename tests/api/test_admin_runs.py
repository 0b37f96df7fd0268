"""The route of running runs behind an authorizer: status, shape, tenants and scopes."""

import asyncio
import time
from typing import Any

import pytest
from infra.local.engine import Engine
from tests.api.test_admin_keys import AdminApi
from tests.listed_runs import put_run

from stint.domain.ids import new_id, new_name
from stint.domain.running_runs import RunningRun
from stint.store.clients import make_dynamodb
from stint.store.running_runs import RunningRunStore
from stint.store.table import Table

RUNS = "/v1/admin/runs"


class RunsApi(AdminApi):
    """The same app beside processes that run something."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.table = engine.outputs["TableName"]

    def run(self, tenant: str = "", **fields: Any) -> RunningRun:
        """List a run, by default a response."""
        ids = {"kind": "response", "id": new_name("resp")} | fields
        now = int(time.time())
        run = RunningRun(model="m", began_at=now - 10, until=now + 60, **ids)

        async def put() -> None:
            await put_run(RunningRunStore(Table(make_dynamodb(), self.table)), tenant or self.tenant, run)

        asyncio.run(put())
        return run

    def ids(self, query: str = "", **caller: str) -> list[str]:
        answer = self.send("GET", RUNS + query, **caller)
        assert answer.status_code == 200, answer.text
        return [run["id"] for run in answer.json()["data"]]


@pytest.fixture
def api(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> RunsApi:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    return RunsApi(engine)


def test_running_runs_are_listed_without_content_the_newest_first(api: RunsApi) -> None:
    response = api.run(conversation_id=new_name("conv"))
    turn = api.run(kind="turn", id=new_id(), agent_id=new_id(), session_id=new_id(), key_id="0" * 32)

    listed = api.send("GET", RUNS).json()

    assert (listed["object"], listed["has_more"], listed["first_id"], listed["last_id"]) == (
        *("list", False),
        *(turn.id, response.id),
    )
    first, second = listed["data"]
    assert first == {
        "object": "run",
        "kind": "turn",
        "id": turn.id,
        "agent_id": turn.agent_id,
        "session_id": turn.session_id,
        "conversation_id": None,
        "model": "m",
        "key_id": "0" * 32,
        "user_hash": None,
        "background": False,
        "on_disconnect": "continue",
        "began_at": turn.began_at,
        "until": turn.until,
    }
    assert (second["kind"], second["conversation_id"]) == ("response", response.conversation_id)


def test_pages_and_filters(api: RunsApi) -> None:
    agent, session = new_id(), new_id()
    runs = [api.run(kind="turn", id=new_id(), agent_id=agent, session_id=session, key_id="a" * 32) for _ in range(3)]
    other = api.run(kind="turn", id=new_id(), agent_id=agent, session_id=new_id(), key_id="b" * 32)
    third, second, first = [run.id for run in reversed(runs)]

    assert api.ids("?limit=2") == [other.id, third]
    assert api.ids(f"?limit=2&after={third}") == [second, first]
    assert api.ids(f"?session_id={session}") == [third, second, first]
    assert api.ids(f"?key_id={'b' * 32}") == [other.id]
    assert api.ids(f"?agent_id={agent}&session_id={other.session_id}") == [other.id]
    assert api.ids(f"?agent_id={new_id()}") == []


def test_runs_of_another_tenant_are_for_the_operator_alone(api: RunsApi) -> None:
    run = api.run()
    strange = f"{api.tenant}-b"

    assert api.ids(tenant=strange) == []
    refused = api.send("GET", f"{RUNS}?tenant={api.tenant}", tenant=strange)
    assert (refused.status_code, "cannot manage the tenant" in refused.text) == (403, True)
    assert api.ids(f"?tenant={api.tenant}", tenant="ops") == [run.id]


def test_the_scope_admin_is_needed(api: RunsApi) -> None:
    refused = api.send("GET", RUNS, scopes="use registry:write users:act")

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "insufficient_scope")


@pytest.mark.parametrize("query", ["after=x", "after=", "limit=-2", "limit=x", f"key_id={'a' * 65}", "tenant=T%23stop"])
def test_parameters_that_cannot_be_are_refused(api: RunsApi, query: str) -> None:
    assert api.send("GET", f"{RUNS}?{query}").status_code == 400
