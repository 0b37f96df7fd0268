"""Random deaths, errors, cancellations, retries and readers that reconnect: `make soak MINUTES=60`.

Callers run turns and responses with tools side by side. At the end, each is read once more, without faults.
"""

import argparse
import random
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from infra.local.engine import Engine
from tests.faults.api import Api, Body, Reply
from tests.faults.aws_calls import AwsCall
from tests.faults.cloud import FaultyCloud
from tests.faults.fault_proxy import DEATHS, FaultKind
from tests.faults.scenario import Finding, Findings
from tests.faults.soak_runs import SoakResponse, SoakRun, SoakTurn

CALLERS = 4
LEASE_SECONDS = 2.0
DEATH_SHARE, ERROR_SHARE = 0.004, 0.02
"""Shares of the calls of AWS that are the last ones of their process, and that fail."""
KINDS: tuple[type[SoakRun], ...] = (SoakTurn, SoakTurn, SoakResponse)


class RandomFaults:
    """Chooses the fault of each attempt of a call. All attempts of a call have the same one."""

    def __init__(self, seed: int) -> None:
        self.injected: Counter[str] = Counter()
        self.stopped = False
        self._random = random.Random(seed)
        self._chosen: dict[str, FaultKind] = {}

    def choose(self, call: AwsCall) -> FaultKind | None:
        if self.stopped:
            return None
        if not call.is_first:
            kind = self._chosen.get(call.call_id)
            return None if kind in (FaultKind.lost_once, FaultKind.partial) else kind
        drawn = self._random.random()
        if drawn >= DEATH_SHARE + ERROR_SHARE:
            return None
        kinds = DEATHS if drawn < DEATH_SHARE else tuple(kind for kind in FaultKind if kind not in DEATHS)
        kind = self._random.choice(kinds)
        if kind is FaultKind.partial and not call.can_split:
            return None
        self._chosen[call.call_id] = kind
        self.injected[kind.value] += 1
        return kind


class RestartedServer:
    """A server of the API that is started again after each death."""

    def __init__(self, cloud: FaultyCloud) -> None:
        self._cloud, self._lock = cloud, threading.Lock()
        self._stack = ExitStack()
        self._api: Api | None = None

    def current(self) -> Api:
        """Return the API of the running server."""
        with self._lock:
            if self._api is None:
                self._api = self._stack.enter_context(self._cloud.serve())
            return self._api

    def replace(self, dead: Api) -> None:
        """Start another server unless this one has been replaced already."""
        with self._lock:
            if self._api is dead:
                self._stack.close()
                self._api = None

    def close(self) -> None:
        self._stack.close()


class Soak:
    """One run. `finish` returns what was lost, stuck or doubled."""

    def __init__(self, cloud: FaultyCloud, seconds: float, seed: int) -> None:
        self.cloud, self.end = cloud, time.monotonic() + seconds
        self.faults, self.server = RandomFaults(seed), RestartedServer(cloud)
        self.runs: list[SoakRun] = []
        self.random = random.Random(seed)
        cloud.proxy.choose, cloud.stop_seconds = self.faults.choose, LEASE_SECONDS

    def call(self, send: Callable[[Api], Reply]) -> Reply:
        """Send a request to the server that runs now. A broken connection is the death of the server."""
        api = self.server.current()
        try:
            reply = send(api)
        except RuntimeError:  # the client was closed with a dead server
            return Reply()
        if not reply.complete:
            self.server.replace(api)
        return reply

    def serve_caller(self) -> None:
        while time.monotonic() < self.end:
            run = self.random.choice(KINDS)(self.call, self.cloud.tools, uuid.uuid4().hex[:12])
            if run.prepare():
                self.runs.append(run)
                run.act(self.random)

    def serve_queue(self) -> None:
        while time.monotonic() < self.end:
            self.cloud.work_off(observed=True)
            time.sleep(0.2)

    def run(self) -> None:
        with ThreadPoolExecutor(CALLERS + 1) as threads:
            futures = [threads.submit(self.serve_caller) for _ in range(CALLERS)]
            futures.append(threads.submit(self.serve_queue))
            for future in futures:
                future.result()

    def finish(self) -> Findings:
        """Check all runs without faults, when the leases have ended."""
        self.faults.stopped = True
        self.server.close()
        time.sleep(2 * LEASE_SECONDS)
        self.cloud.work_off(redeliver=True)
        with self.cloud.serve() as api:
            for run in self.runs:
                yield from run.check(api)
        for effect in self.cloud.tools.repeated:
            yield Finding("doubled", f"the effect of {effect!r}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    with Engine() as engine, FaultyCloud(engine, LEASE_SECONDS) as cloud:
        soak = Soak(cloud, options.minutes * 60, options.seed)
        soak.run()
        findings = list(soak.finish())
    return report(soak, findings, options.seed)


def report(soak: Soak, findings: list[Finding], seed: int) -> int:
    """Print what was tried and found, and return the exit code."""
    for finding in findings:
        print(f"{finding.kind}: {finding.text}")
    kinds: Body = dict(sorted(soak.faults.injected.items()))
    deaths = sum(count for kind, count in kinds.items() if kind in DEATHS)
    found = Counter(finding.kind for finding in findings)
    print(f"seed {seed}; {kinds}")
    print(
        f"soak: {len(soak.runs)} runs, {deaths} deaths, {sum(kinds.values()) - deaths} errors: "
        f"{found['lost']} lost, {found['stuck']} stuck, {found['doubled']} doubled"
    )
    return 1 if findings or not soak.runs else 0


if __name__ == "__main__":
    sys.exit(main())
