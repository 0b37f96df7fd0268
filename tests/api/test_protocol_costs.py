"""The table "Protocols" of docs/costs.md: units of calls by MCP, A2A and AG-UI, beside those of Llama Stack's API.

All records are short, and the process knows the agent and the stops, as after a first call.
"""

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from tests.api import mcp_client
from tests.api.a2a_client import result_of, rpc, send, text_message
from tests.api.ag_ui_client import Frontend, said
from tests.api.api_client import create_agent, create_session, turn
from tests.api.app_fixture import AppFixture, Served

from stint.dataclasses import dataclass
from stint.store.items import decode, size

COSTS = (Path(__file__).parents[2] / "docs" / "costs.md").read_text()
PROTOCOLS = COSTS.partition("\n## Protocols\n")[2].partition("\n## ")[0]
ROW = re.compile(r"^\| (.+?) \| ([\d.]+) \| ([\d.]+) \| (\d+) \|$", re.MULTILINE)
READS = ("GetItem", "Query", "BatchGetItem")
TEXT = "say: Hello"
TASKS = 5

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cost:
    """The units of a request, and how many calls of DynamoDB read. Those of the watch are not included."""

    written: float
    read: float
    calls: int


class Meter:
    """Measures requests by their names."""

    def __init__(self, app_fixture: AppFixture, server: Served) -> None:
        self.proxy, self.server = app_fixture.proxy, server
        self.costs: dict[str, Cost] = {}
        self.more = 0
        """Read units of long answers, of which the engine charges one."""

    def measure(self, name: str, act: Callable[[], T]) -> T:
        self.server.settle()
        self.proxy.forget()
        self.more = 0
        with ExitStack() as stack:
            for operation in ("GetItem", "Query"):
                stack.enter_context(self.proxy.editing(operation, answer=self.note))
            seen = stack.enter_context(self.proxy.watch())
            answer = act()
            self.server.settle()
        # The engine charges nothing for these. Those with stops are the watch, which a slow machine reads more often.
        batches = [call for call in seen if call.startswith("BatchGetItem ") and "#stop:" not in call]
        units, calls = self.proxy.units, self.proxy.calls
        self.costs[name] = Cost(
            sum(count for operation, count in units.items() if operation not in READS),
            units["GetItem"] + units["Query"] + self.more + sum(map(units_of_batch, batches)),
            calls["GetItem"] + calls["Query"] + len(batches),
        )
        return answer

    def note(self, answer: dict[str, Any]) -> None:
        found = [*answer.get("Items", []), answer.get("Item", {})]
        self.more += max(-(-sum(size(decode(item)) for item in found) // 4096), 1) - 1


def units_of_batch(call: str) -> float:
    tables = json.loads(call.partition(" ")[2])["RequestItems"].values()
    return sum(len(table["Keys"]) * (1 if table.get("ConsistentRead") else 0.5) for table in tables)


@pytest.fixture
def meter(app_fixture: AppFixture, server: Served) -> Meter:
    return Meter(app_fixture, server)


@pytest.fixture
def agent(http: httpx.Client) -> str:
    """Return an agent that the process knows, with the stops."""
    agent = create_agent(http)
    turn(http, create_session(http, agent), TEXT)
    return agent


def measure_llama_stack(meter: Meter, http: httpx.Client, agent: str) -> None:
    session = meter.measure("Llama Stack: session", lambda: create_session(http, agent))
    meter.measure("its first turn", lambda: turn(http, session, TEXT))
    meter.measure("its next turn", lambda: turn(http, session, TEXT))


def measure_mcp(meter: Meter, http: httpx.Client, agent: str) -> None:
    name = mcp_client.tool_of(http, agent)

    def call(number: int, **arguments: str) -> Any:
        body = mcp_client.call(name, TEXT, number, arguments=arguments)
        return mcp_client.send(http, body)["structuredContent"]["session_id"]

    session = meter.measure("MCP: `tools/call`, new session", lambda: call(1))
    meter.measure("MCP: `tools/call` with `session_id`", lambda: call(2, session_id=session))


def measure_a2a(meter: Meter, http: httpx.Client, agent: str) -> None:
    task = meter.measure("A2A: `SendMessage`, new context", lambda: send(http, agent, TEXT))
    context = {"contextId": task["contextId"]}
    meter.measure("A2A: `SendMessage` with `contextId`", lambda: send(http, agent, text_message(TEXT, **context)))
    for _ in range(TASKS - 2):
        send(http, agent, text_message(TEXT, **context))
    meter.measure("A2A: `GetTask`", lambda: result_of(rpc(http, agent, "GetTask", {"id": task["id"]})))
    page = meter.measure("A2A: `ListTasks`, context of 5", lambda: result_of(rpc(http, agent, "ListTasks", context)))
    assert len(page["tasks"]) == TASKS


def measure_ag_ui(meter: Meter, http: httpx.Client, agent: str) -> None:
    frontend = Frontend(http, agent)
    first = meter.measure("AG-UI: run, new thread", lambda: frontend.run(said("m1", TEXT)))
    second = meter.measure("AG-UI: second run of a thread", lambda: frontend.run(said("m2", TEXT)))
    assert [events[-1]["type"] for events in (first, second)] == ["RUN_FINISHED"] * 2


def test_the_units_of_the_protocols_are_documented(meter: Meter, http: httpx.Client, agent: str) -> None:
    for measure in (measure_llama_stack, measure_mcp, measure_a2a, measure_ag_ui):
        measure(meter, http, agent)

    rows = {
        name: Cost(float(written), float(read), int(calls)) for name, written, read, calls in ROW.findall(PROTOCOLS)
    }
    assert meter.costs == rows
