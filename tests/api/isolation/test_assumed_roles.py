"""A warm process with TenantIsolation iam: each tenant's data is read with the credentials of that tenant."""

import time
from collections import Counter
from collections.abc import Iterator

import pytest
from infra.local.engine import Engine
from tests.api.isolation.belongings import create_agents, create_files, create_responses, create_stores
from tests.api.isolation.warm_process import WarmProcess
from tests.servers.sts import StsServer, tags_of

from stint.bootstrap.tenant_isolation import make_data_credentials
from stint.caller import set_tenant
from stint.domain.ids import new_id
from stint.store.keys import index_owner

ROLE = "arn:aws:iam::123456789012:role/data"


@pytest.fixture
def sts() -> Iterator[StsServer]:
    with StsServer(time.time) as server:
        yield server


@pytest.fixture
def process(engine: Engine, sts: StsServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[WarmProcess]:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
    process = WarmProcess(engine, {"STINT_DATA_ROLE_ARN": ROLE})
    with process.served:
        yield process


def test_the_role_is_assumed_once_for_each_tenant_of_a_process(process: WarmProcess, sts: StsServer) -> None:
    tenants = [f"{name}-{new_id()[-12:]}" for name in ("a", "b")]
    for _ in range(2):
        for tenant in tenants:
            with process.client(tenant) as http:
                for create in (create_agents, create_responses, create_files, create_stores):
                    create(http, f"{tenant}-{new_id()[-12:]}")

    assert Counter(tags_of(each)["tenant"] for each in sts.requests) == dict.fromkeys(tenants, 1)
    assert {each["RoleArn"] for each in sts.requests} == {ROLE}
    assert [tags_of(each)["index"] for each in sts.requests] == [index_owner(tenant) for tenant in tenants]


def test_a_request_waits_for_nothing_if_the_role_is_refused(process: WarmProcess, sts: StsServer) -> None:
    sts.refusals = [(403, "AccessDenied")]

    with process.client(f"c-{new_id()[-12:]}") as http:
        refused, later = http.get("/v1/agents"), http.get("/v1/agents")

    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "store_unavailable")
    assert later.status_code == 200


@pytest.mark.parametrize("skew", [-7200, 7200])
async def test_a_process_with_a_wrong_clock_assumes_the_role(monkeypatch: pytest.MonkeyPatch, skew: float) -> None:
    with StsServer(lambda: time.time() - skew) as sts:
        variables = {"REGION": "eu-west-1", "ACCESS_KEY_ID": "AKIAOWN", "SECRET_ACCESS_KEY": "secret"}
        for name, value in variables.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        credentials = make_data_credentials(ROLE)
        for tenant in ("a", "b", "a", "b"):
            set_tenant(tenant)
            await credentials.get()

    assert [tags_of(each)["tenant"] for each in sts.requests] == ["a", "a", "b"]
