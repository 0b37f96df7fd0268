"""Background responses reserve their budgets in the worker."""

from collections.abc import Iterator

import pytest
from tests.clock import CLOCK
from tests.script_model import said, script
from tests.services.worker_fixture import WorkerFixture
from tests.store.conftest import Cloud

from stint.caller import set_principal
from stint.domain.principals import Budgets, Principal


@pytest.fixture
def limited(cloud: Cloud, tenant: str) -> Iterator[WorkerFixture]:
    """A worker whose caller may send one request per minute."""
    set_principal(Principal(tenant, "s", frozenset({"use"}), "k1", budgets=Budgets(requests_per_minute=1)))
    with CLOCK.stop():
        yield WorkerFixture(cloud, tenant, script(said(), said()))
    set_principal(None)


async def test_the_creation_reserves_nothing_and_the_worker_does(limited: WorkerFixture, cloud: Cloud) -> None:
    response_id = await limited.create()
    before = [item for item in cloud.items(limited.tenant) if "#budget" in item["pk"]["S"]]

    await limited.run(response_id)

    [counter] = [item for item in cloud.items(limited.tenant) if "#budget" in item["pk"]["S"]]
    assert before == []
    assert [value for name, value in counter.items() if name.startswith("requests_")] == [{"N": "1"}]


async def test_a_response_that_cannot_wait_for_the_next_minute_fails(limited: WorkerFixture) -> None:
    await limited.finished()
    response_id = await limited.create()

    await limited.run(response_id, seconds=0.5)

    response = await limited.get(response_id)
    assert (response.status, response.error and response.error.code) == ("failed", "rate_limit_exceeded")
