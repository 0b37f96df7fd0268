"""Credentials of a role that is assumed for each tenant."""

import asyncio
from collections.abc import Iterator
from contextvars import ContextVar

import pytest
from tests.servers.sts import StsServer, tags_of

from stint.aws.assumed_role import AssumedRole
from stint.aws.credentials import Credentials, CredentialsError, RefreshedCredentials, StaticCredentials
from stint.aws.environment import AwsEnvironment
from stint.aws.tenant_credentials import MOST_TENANTS, TenantCredentials

ROLE = "arn:aws:iam::123456789012:role/data"
START = 1_800_000_000.0
tenant: ContextVar[str] = ContextVar("tenant")


class Times:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture
def sts(times: Times) -> Iterator[StsServer]:
    with StsServer(times) as server:
        yield server


@pytest.fixture
def credentials(sts: StsServer, times: Times) -> TenantCredentials:
    environment = AwsEnvironment({"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_STS": sts.url})
    own = RefreshedCredentials(StaticCredentials(Credentials("AKIAOWN", "secret", "own-token")), times)

    def make_provider(name: str) -> AssumedRole:
        return AssumedRole(environment, own, ROLE, f"stint-{name}", {"tenant": name, "index": "0" * 16}, times)

    return TenantCredentials(tenant.get, make_provider, times)


async def get(credentials: TenantCredentials, name: str) -> str:
    """Return the access key of a tenant."""
    tenant.set(name)
    return (await credentials.get()).access_key


async def test_a_session_has_the_tags_of_its_tenant(credentials: TenantCredentials, sts: StsServer) -> None:
    tenant.set("acme")

    found = await credentials.get()

    [sent] = sts.requests
    assert (found.access_key, found.secret_key, found.token) == (
        "ASIAACME1",
        "wJalr/XUtnFEMI+K7MDENG=",
        "token/of+ASIAACME1==",
    )
    assert found.expires_at == START + 3600
    assert (sent["Action"], sent["RoleArn"], sent["RoleSessionName"]) == ("AssumeRole", ROLE, "stint-acme")
    assert tags_of(sent) == {"tenant": "acme", "index": "0" * 16}
    assert sent["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIAOWN/")
    assert "/eu-west-1/sts/aws4_request" in sent["Authorization"]


async def test_a_process_assumes_the_role_once_per_tenant(credentials: TenantCredentials, sts: StsServer) -> None:
    for _ in range(3):
        assert await get(credentials, "acme") == "ASIAACME1"
        assert await get(credentials, "emca") == "ASIAEMCA2"

    assert [tags_of(each)["tenant"] for each in sts.requests] == ["acme", "emca"]


async def test_calls_at_the_same_time_share_one_request(credentials: TenantCredentials, sts: StsServer) -> None:
    tenant.set("acme")

    await asyncio.gather(*(credentials.get() for _ in range(20)))

    assert len(sts.requests) == 1


async def test_a_session_is_replaced_before_it_expires(
    credentials: TenantCredentials, sts: StsServer, times: Times
) -> None:
    await get(credentials, "acme")

    times.now += 2600
    kept = await get(credentials, "acme")
    times.now += 500
    replaced = await get(credentials, "acme")

    assert (kept, replaced) == ("ASIAACME1", "ASIAACME2")


async def test_code_without_a_tenant_has_no_credentials(credentials: TenantCredentials, sts: StsServer) -> None:
    with pytest.raises(LookupError):
        await credentials.get()

    assert sts.requests == []


async def test_a_busy_sts_is_asked_again(credentials: TenantCredentials, sts: StsServer) -> None:
    sts.refusals = [(503, "ServiceUnavailable"), (400, "Throttling")]

    assert await get(credentials, "acme") == "ASIAACME3"


async def test_a_refusal_says_what_to_check(credentials: TenantCredentials, sts: StsServer) -> None:
    sts.refusals = [(403, "AccessDenied")]

    with pytest.raises(CredentialsError, match="could not be assumed: AccessDenied"):
        await get(credentials, "acme")

    assert await get(credentials, "acme") == "ASIAACME2"


async def test_a_process_keeps_the_sessions_of_the_tenants_last_used(
    credentials: TenantCredentials, sts: StsServer
) -> None:
    names = [f"t{number}" for number in range(MOST_TENANTS)]
    for name in names:
        await get(credentials, name)

    await get(credentials, names[0])
    await get(credentials, "another")
    before = len(sts.requests)
    await get(credentials, names[0])
    await get(credentials, names[1])

    assert [tags_of(each)["tenant"] for each in sts.requests[before:]] == [names[1]]
