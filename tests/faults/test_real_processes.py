"""The processes of `make run` are killed in the middle of streams, with both values of CONCURRENCY."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from infra.local.state import State
from tests.faults.api import Api, Body
from tests.faults.cloud import SETTINGS
from tests.faults.fault_proxy import Fault, FaultKind, FaultProxy, kill_process
from tests.faults.points import PROPERTY, TriedPoint
from tests.faults.scenario import Finding, Findings
from tests.faults.test_faults import Record
from tests.faults.tool_server import TOOLS, RecordingToolServer
from tests.faults.turn_scenarios import TurnScenario, user
from tests.system.run_process import Run

pytestmark = pytest.mark.timeout(600)
POINTS = range(1, 11)
STREAMS = 2
BUSY_SECONDS = 60.0
RUNTIMES = ("stint_runtime", "awslambdaric")


class TurnOfRealProcess(TurnScenario):
    """A streamed turn with two tools of the server, which other turns run beside."""

    name = "make-run"

    def __init__(self, system: "RealSystem", label: str) -> None:
        self.system = system
        self.label = label

    def message(self) -> str:
        return "\n".join(f'call: {tool} {{"label": "{self.label}"}}' for tool in TOOLS)

    def _check_next(self, api: Api) -> Findings:
        """The session takes another turn once the lease of the dead process has ended."""
        body: Body = {"messages": user("say: again"), "stream": False}
        end = time.monotonic() + BUSY_SECONDS
        while (reply := api.post(f"{self.session}/turn", body)).status in (409, 502) and time.monotonic() < end:
            time.sleep(0.2)
        if not reply.ok:
            yield Finding("stuck", f"the session: {reply.status} {reply.text[:200]}")


class RealSystem:
    """`make run`, whose functions call DynamoDB through the proxy. A death kills all of its function processes."""

    def __init__(self, state: Path, concurrency: str, proxy: FaultProxy, tools: RecordingToolServer) -> None:
        self.proxy, self.tools, self.pids = proxy, tools, set[int]()
        self.port = proxy.open_port(self.kill_functions, observed=True)
        shell = {"STINT_LEASE_SECONDS": "1", "STINT_REGISTRY": tools.registry(), "AWS_REGION": "us-east-1"}
        own = {name: SETTINGS[name] for name in ("STINT_SCRIPTED_WORD_SECONDS", "STINT_ALLOWED_HOSTS")}
        endpoint = {"AWS_ENDPOINT_URL_DYNAMODB": self.port.url}
        self.run = Run(state, 0, "--concurrency", concurrency, shell=shell | own | endpoint)
        self.run.read_until("Ctrl-C stops")
        engine = State(state).published_engine()
        assert engine is not None
        proxy.endpoint = engine.endpoint

    def kill_functions(self) -> None:
        table = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
        rows = [line.split(None, 2) for line in table.stdout.splitlines()]
        ours = [row for row in rows if int(row[1]) == self.run.process.pid]
        for pid in (int(row[0]) for row in ours if any(name in row[2] for name in RUNTIMES)):
            kill_process(pid)

    def try_point(self, fault: Fault) -> TriedPoint | None:
        """Run turns side by side with a fault, and check them. None if the fault hit no call."""
        self.tools.effects.clear()
        with Api(f"http://127.0.0.1:{self.run.port}") as api:
            turns = [TurnOfRealProcess(self, f"{fault.number}-{number}") for number in range(STREAMS)]
            for turn in turns:
                turn.prepare(api)
            observed = self.proxy.begin(fault)
            threads = [threading.Thread(target=turn.act, args=(api,)) for turn in turns]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.proxy.end()
            findings = [finding for turn in turns for finding in turn.check(api)]
        findings += [Finding("doubled", f"the effect of {effect!r}") for effect in self.tools.repeated]
        if not observed.injected:
            return None
        return TriedPoint("make-run", observed.calls[fault.number], fault, tuple(findings))


@pytest.fixture(params=["shared", "lambda"])
def system(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealSystem]:
    with ExitStack() as stack:
        proxy = stack.enter_context(FaultProxy(""))
        tools = stack.enter_context(RecordingToolServer())
        system = RealSystem(tmp_path, request.param, proxy, tools)
        stack.callback(system.run.stop)
        yield system


def test_a_killed_process_loses_none_of_its_streams(system: RealSystem, record_property: Record) -> None:
    kinds = (FaultKind.death_before, FaultKind.death_after)
    tried = [system.try_point(Fault(kinds[number % 2], number)) for number in POINTS]

    points = [point for point in tried if point is not None]
    record_property(PROPERTY, [point.to_property() for point in points])
    assert len(points) >= 10
    assert [str(point) for point in points if point.findings] == []
