"""Units that sessions cost besides their turns."""

from tests.store.conftest import Cloud
from tests.store.record_samples import agent, session


async def test_a_session_costs_six_write_units_and_a_poll_half_a_read_unit(cloud: Cloud, tenant: str) -> None:
    created, begun = agent(), session("first")
    await cloud.store.agents.create(tenant, created)
    cloud.forget()

    await cloud.store.sessions.create(tenant, created.agent_id, begun, None)
    created_for = dict(cloud.units)
    cloud.forget()
    await cloud.store.sessions.read_activity(tenant, created.agent_id, begun.session_id)

    assert created_for == {"TransactWriteItems": 6, "GetItem": 1}
    assert cloud.units == {"GetItem": 0.5}
