from infra.local.engine import Engine
from infra.local.sample_ids import AGENT, AWAITING_TURN, COMPLETED_TURN, SESSION
from infra.local.samples import clients, store_samples

from stint.domain.run_outcome import RunStatus
from stint.http.dependencies import TENANT
from stint.store.store import Store


def test_samples_are_stored_anew_whatever_an_interrupted_event_left(engine: Engine) -> None:
    names = {"STINT_TABLE": engine.outputs["TableName"], "STINT_BUCKET": engine.outputs["BucketName"]}
    environment = engine.environment() | names
    with clients(environment) as (dynamodb, s3):
        store = Store.open(dynamodb, names["STINT_TABLE"], lambda: s3, names["STINT_BUCKET"])
        store_samples(environment)
        store.session_leases.acquire(TENANT, AGENT, SESSION, AWAITING_TURN, resume=True, seconds=60)
        store.agents.mark_deleted(TENANT, AGENT)

        store_samples(environment)

        history = store.turns.history(TENANT, AGENT, SESSION)
        pending = store.turns.get_pending(TENANT, AGENT, SESSION, AWAITING_TURN)
        session = store.sessions.get(TENANT, AGENT, SESSION)
    found = {turn.header.turn_id: turn.status for turn in history.turns}
    assert found == {COMPLETED_TURN: RunStatus.completed, AWAITING_TURN: RunStatus.awaiting_input}
    assert pending is not None
    assert [call.call_id for call in pending.tool_calls] == ["call_2"]
    assert (session.lease_turn, session.last) == (None, history.last)
