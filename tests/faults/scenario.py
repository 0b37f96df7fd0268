"""Scenarios, in which each call of AWS is a point of failure, and what their checks find."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from tests.faults.api import Api, Reply
from tests.faults.cloud import LEASE, FaultyCloud, Item
from tests.faults.fault_proxy import Fault, FaultKind

LATER = LEASE + 1.0
"""Seconds after which no lease of a dead process is left."""

KEPT = ("#attempt:", "#retry:", "idempotency")
"""Parts of the keys of records that outlive an object until they expire: those that recognize retries."""

FindingKind = Literal["lost", "stuck", "doubled"]


@dataclass(frozen=True)
class Finding:
    """A broken promise."""

    kind: FindingKind
    text: str


Findings = Iterator[Finding]


class Scenario:
    """Something that callers do. An instance runs once.

    `prepare` runs without faults, `act` with one. `check_at_once` then runs in another process, and `check` when all
    leases have ended.
    """

    name: ClassVar[str]
    works_before: ClassVar[bool] = True
    """Whether the worker runs the tasks of `prepare`."""

    has_work: ClassVar[bool] = False
    """Whether the worker runs while calls are counted."""

    error_code: ClassVar[str] = ""
    """Code of the error with which the stream of `act` ends also without a fault."""

    most_deaths: ClassVar[int] = 3
    most_errors: ClassVar[int] = 4
    """Maximum points of the scenario in a run, unless POINT or FAULTS=all is set. Each commit tries others."""

    def __init__(self, cloud: FaultyCloud) -> None:
        self.cloud = cloud
        self.reply = Reply()
        self.undisturbed = False
        """Whether `act` runs without a fault."""

    def prepare(self, api: Api) -> None:
        """Make what the scenario needs."""

    def act(self, api: Api) -> None:
        """Do what the scenario is about. It fails if a fault is injected."""
        raise NotImplementedError

    def check_at_once(self, api: Api) -> Findings:
        """Yield what is stuck while leases of dead processes may be left."""
        yield from ()

    def check(self, api: Api) -> Findings:
        """Yield what is lost, stuck or doubled."""
        raise NotImplementedError

    def check_deletion(self, api: Api) -> Findings:
        """Delete what the scenario is about, and yield what is left of it."""
        yield from ()


def check_lost_once(reply: Reply, fault: Fault | None, error_code: str = "") -> Findings:
    """A call whose first answer was lost is repeated, and recognizes its own effect: the request ends as without it."""
    if fault is None or fault.kind is not FaultKind.lost_once:
        return
    failed = [
        event
        for event in reply.events
        if (event.get("error") or event.get("type") == "error")
        and not (error_code and (event.get("error") or {}).get("code") == error_code)
    ]
    if reply.status >= 400 or failed:
        yield Finding("lost", f"a request whose call was repeated: {reply.status} {failed}")


def check_no_record(cloud: FaultyCloud, marker: str) -> Findings:
    """Nothing of a deleted object stays, except for seals and records of retries, which expire."""
    left = [
        "|".join(key)
        for key, item in cloud.records().items()
        if marker in "|".join(key) and not ("expires_at" in item and is_kept("|".join(key), item))
    ]
    left += [key for key in cloud.blobs() if marker in key and not any(word in key for word in KEPT)]
    if left:
        yield Finding("stuck", f"records of a deleted object: {sorted(left)}")


def is_kept(key: str, item: Item) -> bool:
    """Return whether a record outlives its object until it expires."""
    return "sealed_at" in item or any(word in key for word in KEPT)


def check_seals(cloud: FaultyCloud) -> Findings:
    """Each seal expires."""
    seals = {"|".join(key): item for key, item in cloud.records().items() if "sealed_at" in item}
    if staying := [key for key, item in seals.items() if "expires_at" not in item]:
        yield Finding("stuck", f"seals that do not expire: {staying}")


@dataclass
class Outcome:
    """The result of a scenario with one fault. `call` is the one that it hit; empty if there was none."""

    fault: Fault | None
    calls: list[str]
    injected: bool
    findings: list[Finding]


def run_scenario(kind: type[Scenario], cloud: FaultyCloud, fault: Fault | None = None) -> Outcome:
    """Run a scenario with a fault, and check it after the lease time."""
    cloud.purge()
    scenario = kind(cloud)
    scenario.undisturbed = fault is None
    scenario.prepare(cloud.api())
    if scenario.works_before:
        cloud.work_off()
    observed = cloud.proxy.begin(fault)
    try:
        with cloud.serve() as api:
            scenario.act(api)
        if kind.has_work:
            cloud.work_off(observed=True)
    finally:
        cloud.proxy.end()
    findings = [*check_lost_once(scenario.reply, fault, kind.error_code)] if observed.injected else []
    findings += scenario.check_at_once(cloud.api())
    cloud.work_off(LATER)
    findings += scenario.check(cloud.api(LATER))
    findings += check_seals(cloud)
    findings += scenario.check_deletion(cloud.api(LATER))
    findings += [Finding("doubled", f"the effect of {effect!r}") for effect in cloud.tools.repeated]
    return Outcome(fault, observed.calls, bool(observed.injected), findings)
