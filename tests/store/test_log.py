"""Sessions under random use, against a model of three lines: what was stored, by whom, and who may still store."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.store.conftest import Cloud
from tests.store.record_samples import SessionFixture, ending, header, pending, record

from stint.domain.errors import Conflict, Interrupted
from stint.domain.llama_stack.stored_turns import TurnRecord
from stint.domain.run_outcome import RunStatus
from stint.store.session_leases import SessionLease
from stint.store.sessions import LastTurn
from stint.store.store import Store

TEXTS = st.text(max_size=20) | st.integers(900, 4_000).map("x".__mul__)
RESUMABLE = (RunStatus.awaiting_input, RunStatus.completed)
ENDINGS = st.sampled_from([RunStatus.awaiting_input, RunStatus.completed, RunStatus.failed])


class Log(RuleBasedStateMachine):
    """`logs` holds the records of each turn that began; `dead` the leases whose holders were taken for dead."""

    store: Store
    tenant: str

    def __init__(self) -> None:
        super().__init__()
        self.run = asyncio.Runner().run
        self.session_fixture = self.run(SessionFixture.create(self.store, self.tenant))
        self.logs: dict[str, list[TurnRecord]] = {}
        self.lease: SessionLease | None = None
        self.dead: list[SessionLease] = []

    @property
    def last(self) -> LastTurn | None:
        return LastTurn(max(self.logs), len(self.logs[max(self.logs)])) if self.logs else None

    def status(self) -> RunStatus | None:
        records = [one for one in self.logs[max(self.logs)] if not one.fence] if self.logs else []
        return records[-1].ending.status if records and records[-1].ending else None

    @precondition(lambda self: self.lease is None)
    @rule(text=TEXTS)
    def create(self, text: str) -> None:
        self.lease = self.run(self.session_fixture.acquire())
        assert self.lease.last == self.last
        if self.status() is RunStatus.awaiting_input:
            self.run(self.store.turns.seal(self.lease, max(self.logs), cancelled := ending(RunStatus.cancelled)))
            self.logs[max(self.logs)].append(TurnRecord(ending=cancelled))
        self.run(
            self.store.turns.put_header(self.lease, header(self.lease.turn_id, self.session_fixture.session_id, text))
        )
        self.logs[self.lease.turn_id] = []

    @precondition(lambda self: self.lease is None and self.status() in RESUMABLE)
    @rule(silent=st.booleans())
    def resume(self, silent: bool) -> None:
        self.lease = self.run(self.session_fixture.acquire(max(self.logs), resume=True))
        if not (silent and self.status() is RunStatus.completed):
            self.append(record(self.lease.turn_id, "answers"))

    @precondition(lambda self: self.lease is not None)
    @rule(text=TEXTS)
    def step(self, text: str) -> None:
        assert self.lease is not None
        self.append(record(self.lease.turn_id, text))

    @precondition(lambda self: self.lease is not None)
    @rule(text=TEXTS, status=ENDINGS)
    def end(self, text: str, status: RunStatus) -> None:
        assert self.lease is not None
        self.append(record(self.lease.turn_id, text, status))
        self.lease.last = self.last
        self.run(self.lease.release())
        self.lease = None

    @precondition(lambda self: self.lease is not None)
    @rule()
    def take_over(self) -> None:
        assert self.lease is not None
        self.run(self.lease.renew(-0.001))
        self.dead.append(self.lease)
        lease = self.run(self.session_fixture.acquire())
        assert lease.taken_over_turn == self.lease.turn_id
        failed = ending(RunStatus.failed)
        count = self.run(self.store.turns.seal(lease, lease.taken_over_turn, failed))
        complete = self.status() is RunStatus.completed
        self.logs[lease.taken_over_turn].append(TurnRecord(ending=None if complete else failed))
        assert count == len(self.logs[lease.taken_over_turn])
        lease.last = self.last
        self.run(lease.release())
        self.lease = None

    @precondition(lambda self: self.lease is not None)
    @rule(resume=st.booleans())
    def second_request(self, resume: bool) -> None:
        with pytest.raises(Conflict):
            self.run(self.session_fixture.acquire(resume=resume))

    @precondition(lambda self: self.dead)
    @rule()
    def dead_writer_returns(self) -> None:
        for lease in self.dead:
            with pytest.raises(Interrupted):
                self.run(
                    self.store.turns.append(lease, len(self.logs[lease.turn_id]) - 1, record(lease.turn_id, "late"))
                )
            with pytest.raises(Interrupted):
                self.run(lease.renew(30))
            lease.last = LastTurn(lease.turn_id, 999)
            self.run(lease.release())

    @invariant()
    def reads_as_written(self) -> None:
        history = self.run(self.store.turns.history(*self.session_fixture.ids))
        assert {turn.header.turn_id: turn.records for turn in history.turns} == self.logs
        assert [turn.header.turn_id for turn in history.turns] == sorted(self.logs)
        assert history.last == self.last

    def append(self, entry: TurnRecord) -> None:
        assert self.lease is not None
        log = self.logs[self.lease.turn_id]
        if entry.ending and entry.ending.status is RunStatus.awaiting_input:
            self.run(self.store.turns.put_pending(self.lease, pending(self.lease.turn_id)))
        self.run(self.store.turns.append(self.lease, len(log), entry))
        log.append(entry)


@pytest.mark.parametrize(("implementation", "examples"), [("cloud", 8), ("mocked", 3)])
def test_a_session_reads_as_it_was_written_whatever_happens(
    request: pytest.FixtureRequest, tenant: str, implementation: str, examples: int
) -> None:
    """Two implementations of DynamoDB know nothing of each other; moto takes ten times as long."""
    any_cloud: Cloud = request.getfixturevalue(implementation)

    class Session(Log):
        store = any_cloud.store

    Session.tenant = tenant
    few = settings(max_examples=examples, stateful_step_count=15, deadline=None, derandomize=True, database=None)
    run_state_machine_as_test(Session, settings=few)
