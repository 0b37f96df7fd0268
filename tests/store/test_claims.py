import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.clock import CLOCK
from tests.store.conftest import Cloud

from stint.domain.errors import Conflict, Interrupted
from stint.store import keys
from stint.store.claims import REMEMBERED_SECONDS, Claims


@pytest.fixture
def claims(cloud: Cloud) -> Claims:
    return cloud.response_store.claims


def test_a_new_event_is_claimed_with_one_write_of_one_unit(cloud: Cloud, claims: Claims, tenant: str) -> None:
    cloud.forget()

    with CLOCK.stop():
        claim = claims.take(tenant, "order-7", "resp_1", 30)
        now = int(time.time())

    assert cloud.units == {"UpdateItem": 1}
    assert (claim.began, claim.outcome) == ("resp_1", None)
    [item] = cloud.items(tenant)
    assert int(item["expires_at"]["N"]) == now + REMEMBERED_SECONDS


def test_one_of_many_claims_an_event(claims: Claims, tenant: str) -> None:
    def take(number: int) -> str:
        try:
            return claims.take(tenant, "order-7", f"resp_{number}", 30).began
        except Conflict as conflict:
            return conflict.code

    with ThreadPoolExecutor(16) as threads:
        taken = list(threads.map(take, range(16)))

    assert taken.count("event_running") == 15


def test_a_claim_that_has_run_out_is_taken_over_with_what_it_began(claims: Claims, tenant: str) -> None:
    first = claims.take(tenant, "order-7", "", 30)
    claims.note(first, "turn-1")
    claims.renew(first, 0)
    CLOCK.move(0.002)

    second = claims.take(tenant, "order-7", "other", 30)

    assert second.began == "turn-1"
    with pytest.raises(Interrupted):
        claims.note(first, "turn-2")
    with pytest.raises(Interrupted):
        claims.renew(first, 30)
    claims.finish(first, "lost")
    assert claims.held_until(tenant, "order-7") is not None
    claims.finish(second, "done")
    assert claims.take(tenant, "order-7", "other", 30).outcome == "done"


def test_what_is_done_is_done_whoever_asks(claims: Claims, tenant: str) -> None:
    claims.finish(claims.take(tenant, "order-7", "resp_1", 30), '{"status":"completed"}')

    again = [claims.take(tenant, "order-7", "resp_2", 30) for _ in range(2)]

    assert [(claim.began, claim.outcome) for claim in again] == [("resp_1", '{"status":"completed"}')] * 2


def test_an_event_that_is_forgotten_begins_anew_whatever_the_table_still_holds(
    cloud: Cloud, claims: Claims, tenant: str
) -> None:
    claims.finish(claims.take(tenant, "order-7", "resp_1", 30), "done")
    key = {name: {"S": value} for name, value in keys.event(tenant, "order-7")._asdict().items()}
    cloud.dynamodb.update_item(
        TableName=cloud.table,
        Key=key,
        UpdateExpression="SET expires_at = :past",
        ExpressionAttributeValues={":past": {"N": str(int(time.time()) - 1)}},
    )

    claim = claims.take(tenant, "order-7", "resp_2", 30)

    assert (claim.began, claim.outcome) == ("resp_2", None)


def test_events_of_tenants_are_their_own(claims: Claims, tenant: str) -> None:
    first, second = [claims.take(name, "order-7", name, 30) for name in (tenant, f"{tenant}b")]

    assert (first.began, second.began) == (tenant, f"{tenant}b")
    assert claims.held_until(tenant, "unknown") is None
