"""Credentials of a role that is assumed for each tenant."""

import asyncio
from collections.abc import Callable, Iterator
from contextvars import ContextVar

import pytest
from tests.servers.sts import StsServer, tags_of

from stint.aws.credentials import (
    Credentials,
    CredentialsError,
    CredentialsProvider,
    RefreshedCredentials,
    StaticCredentials,
)
from stint.aws.environment import AwsEnvironment
from stint.aws.signature import SignatureClock
from stint.aws.tenant_credentials import MOST_TENANTS, AssumedRole, TenantCredentials

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


OWN = StaticCredentials(Credentials("AKIAOWN", "secret", "own-token"))


def make_credentials(sts: StsServer, now: Callable[[], float], own: CredentialsProvider = OWN) -> TenantCredentials:
    """Return the credentials of a process with a clock of its own."""
    environment = AwsEnvironment({"AWS_REGION": "eu-west-1", "AWS_ENDPOINT_URL_STS": sts.url})
    source, clock = RefreshedCredentials(own, now), SignatureClock(now)

    def make_provider(name: str) -> AssumedRole:
        return AssumedRole(environment, source, ROLE, f"stint-{name}", {"tenant": name, "index": "0" * 16}, clock)

    return TenantCredentials(tenant.get, make_provider, clock)


@pytest.fixture
def credentials(sts: StsServer, times: Times) -> TenantCredentials:
    return make_credentials(sts, times)


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


@pytest.mark.parametrize("skew", [-7200, 7200])
async def test_the_clock_of_sts_is_taken_over_once_for_all_tenants(sts: StsServer, times: Times, skew: float) -> None:
    credentials = make_credentials(sts, lambda: times() + skew)

    for _ in range(2):
        assert await get(credentials, "acme") == "ASIAACME2"
        assert await get(credentials, "emca") == "ASIAEMCA3"
    times.now += 3100
    assert await get(credentials, "acme") == "ASIAACME4"

    assert len(sts.requests) == 4


async def test_tenants_at_the_same_time_take_over_the_clock_of_sts(sts: StsServer, times: Times) -> None:
    credentials = make_credentials(sts, lambda: times() + 3600)
    tasks = [asyncio.create_task(get(credentials, name)) for name in ("a", "b", "c")]

    assert {key[:5] for key in await asyncio.gather(*tasks)} == {"ASIAA", "ASIAB", "ASIAC"}


async def test_a_wrong_signature_at_the_right_time_is_an_error(credentials: TenantCredentials, sts: StsServer) -> None:
    sts.refusals = [(403, "SignatureDoesNotMatch")]

    with pytest.raises(CredentialsError, match="SignatureDoesNotMatch"):
        await get(credentials, "acme")

    assert len(sts.requests) == 1


class Keys:
    """A source whose credentials are others each time."""

    def __init__(self) -> None:
        self.renewals: list[bool] = []

    async def load(self, *, renewed: bool) -> Credentials:
        self.renewals.append(renewed)
        return Credentials(f"AKIA{len(self.renewals)}", "secret", "token")


def own_keys(sts: StsServer) -> list[str]:
    """Return the access key with which each request was signed."""
    return [sent["Authorization"].partition("Credential=")[2].partition("/")[0] for sent in sts.requests]


@pytest.mark.parametrize("code", ["ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId"])
async def test_credentials_that_sts_refuses_are_loaded_again_once(sts: StsServer, times: Times, code: str) -> None:
    own = Keys()
    credentials = make_credentials(sts, times, own)
    sts.refusals = [(403, code)]
    assert await get(credentials, "acme") == "ASIAACME2"

    sts.refusals = [(403, code)] * 2
    with pytest.raises(CredentialsError, match=code):
        await get(credentials, "emca")

    assert own_keys(sts) == ["AKIA1", "AKIA2", "AKIA2", "AKIA3"]
    assert own.renewals == [False, True, True]


async def test_refused_credentials_without_others_are_an_error(credentials: TenantCredentials, sts: StsServer) -> None:
    sts.refusals = [(403, "ExpiredToken")]

    with pytest.raises(CredentialsError, match="ExpiredToken"):
        await get(credentials, "acme")

    assert own_keys(sts) == ["AKIAOWN"]


async def test_a_skewed_process_with_expired_credentials_assumes_the_role(sts: StsServer, times: Times) -> None:
    credentials = make_credentials(sts, lambda: times() - 3600, Keys())
    sts.refusals = [(403, "ExpiredToken")]

    assert await get(credentials, "acme") == "ASIAACME3"


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
