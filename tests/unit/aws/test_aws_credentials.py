"""Credentials: where they come from, their refresh, and where they never appear."""

import asyncio
import json
import logging
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.clock import CLOCK
from tests.unit.aws.dynamodb_server import DynamoDBServer, Pauses, error, make_client, ok, reply

from stint.aws.credentials import Credentials, CredentialsError, RefreshedCredentials
from stint.aws.credentials_chain import choose_provider
from stint.aws.dynamodb import DynamoDBClient, DynamoDBError, NoResponse
from stint.aws.environment import AwsEnvironment

OUT_OF_RANGE = "Sun, 09 Sep 2001 01:47:40 +999999999999999999999999"
SECRETS = {"secret-of-the-key", "token-of-the-session", "AKIDSECRET"}


def document(key: str, seconds: float, **more: Any) -> bytes:
    """Return the response of a container's endpoint with credentials that expire after some seconds."""
    expiration = datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields = {"AccessKeyId": key, "SecretAccessKey": "s", "Token": f"token-{key}", "Expiration": expiration}
    return reply(200, json.dumps(fields | more).encode())


class Container:
    """A DynamoDB server, and the endpoint of a container with its credentials."""

    def __init__(self, server: DynamoDBServer, endpoint: DynamoDBServer, pauses: Pauses) -> None:
        self.server, self.endpoint, self.pauses = server, endpoint, pauses

    def client(self, **variables: str) -> DynamoDBClient:
        return make_client(
            self.server,
            variables={
                "AWS_ACCESS_KEY_ID": "",
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.endpoint.url}/creds?id=1",
                **variables,
            },
            sleep=self.pauses,
        )

    @property
    def keys(self) -> list[str]:
        """Return the access key of each request to DynamoDB."""
        return [request.access_key for request in self.server.requests]


@pytest.fixture
async def container(server: DynamoDBServer, pauses: Pauses) -> Any:
    async with DynamoDBServer() as endpoint:
        yield Container(server, endpoint, pauses)


async def test_the_environment_has_the_credentials(server: DynamoDBServer) -> None:
    for token in ("", "the-token"):
        client = make_client(server, variables={"AWS_SESSION_TOKEN": token})
        await client.call("GetItem", {})
        await client.close()

    first, second = server.requests
    assert first.access_key == second.access_key == "AKIDEXAMPLE"
    assert "x-amz-security-token" not in first.headers
    assert second.headers["x-amz-security-token"] == "the-token"
    assert "x-amz-security-token;" in second.headers["authorization"]


async def test_a_call_can_have_its_own_credentials(server: DynamoDBServer, client: DynamoDBClient) -> None:
    tenants = [Credentials("TENANT1", "s1", "t1"), Credentials("TENANT2", "s2"), None]
    server.script(error("ThrottlingException"))
    for each in tenants:
        await client.call("GetItem", {}, credentials=each)

    assert [each.access_key for each in server.requests] == ["TENANT1", "TENANT1", "TENANT2", "AKIDEXAMPLE"]
    assert [each.headers.get("x-amz-security-token") for each in server.requests] == ["t1", "t1", None, None]


async def test_refused_credentials_of_a_call_are_not_replaced(server: DynamoDBServer, client: DynamoDBClient) -> None:
    server.script(error("ExpiredTokenException"))

    with pytest.raises(DynamoDBError, match="ExpiredTokenException"):
        await client.call("GetItem", {}, credentials=Credentials("TENANT", "s"))

    assert len(server.requests) == 1


async def test_refused_credentials_of_the_environment_are_an_error(
    server: DynamoDBServer, client: DynamoDBClient
) -> None:
    server.script(error("UnrecognizedClientException"))

    with pytest.raises(DynamoDBError, match="UnrecognizedClientException"):
        await client.call("GetItem", {})

    assert len(server.requests) == 1


async def test_a_container_has_the_credentials(container: Container, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("Bearer of-the-file")
    container.endpoint.script(*[document("AKIDC", 3600)] * 3)
    clients = [
        container.client(),
        container.client(AWS_CONTAINER_AUTHORIZATION_TOKEN="Bearer of-the-variable"),
        container.client(
            AWS_CONTAINER_AUTHORIZATION_TOKEN="unused", AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=f"{tmp_path}/token"
        ),
    ]
    for client in clients:
        await client.call("GetItem", {})
        await client.close()

    assert container.keys == ["AKIDC"] * 3
    assert container.server.requests[0].headers["x-amz-security-token"] == "token-AKIDC"
    assert {request.line for request in container.endpoint.requests} == {"GET /creds?id=1 HTTP/1.1"}
    tokens = [request.headers.get("authorization") for request in container.endpoint.requests]
    assert tokens == [None, "Bearer of-the-variable", "Bearer of-the-file"]


async def test_concurrent_calls_share_one_refresh(container: Container) -> None:
    container.endpoint.script(document("AKID1", 3600))
    client = container.client()
    await asyncio.gather(*(client.call("GetItem", {}) for _ in range(10)))

    assert len(container.endpoint.requests) == 1
    await client.close()


async def test_credentials_are_refreshed_before_they_expire(container: Container) -> None:
    client = container.client()
    container.endpoint.script(document("AKID1", 3600), document("AKID2", 7200), document("AKID3", 9000))
    await client.call("GetItem", {})
    CLOCK.move(3600 - 14 * 60)
    await client.call("GetItem", {})  # a refresh begins
    await container.endpoint.until_received(2)
    for _ in range(20):
        await asyncio.sleep(0)
    await client.call("GetItem", {})
    CLOCK.move(4000)
    await client.call("GetItem", {})  # waits for the refresh

    assert container.keys == ["AKID1", "AKID1", "AKID2", "AKID3"]
    await client.close()


async def test_a_refresh_that_fails_early_keeps_the_credentials_and_late_is_an_error(container: Container) -> None:
    client = container.client()
    down = reply(500, b"down")
    container.endpoint.script(document("AKID1", 3600), *[down] * 6)
    await client.call("GetItem", {})
    CLOCK.move(3600 - 14 * 60)
    await client.call("GetItem", {})
    await container.endpoint.until_received(4)
    for _ in range(20):
        await asyncio.sleep(0)
    CLOCK.move(5 * 60)
    with pytest.raises(NoResponse, match="no AWS credentials") as raised:
        await client.call("PutItem", {})

    assert not raised.value.unsure
    assert container.keys == ["AKID1", "AKID1"]
    assert container.pauses.seconds == [1.0] * 4
    await client.close()


@pytest.mark.parametrize("code", ["ExpiredTokenException", "UnrecognizedClientException"])
async def test_credentials_that_dynamodb_refuses_are_loaded_again_once(container: Container, code: str) -> None:
    client = container.client()
    container.endpoint.script(document("AKID1", 3600), document("AKID2", 3600), document("AKID3", 3600))
    container.server.script(error(code))
    assert await client.call("GetItem", {}) == {}
    assert container.pauses.seconds == []

    container.server.script(error(code), error(code))
    with pytest.raises(DynamoDBError, match=code):
        await client.call("GetItem", {})

    assert container.keys == ["AKID1", "AKID2", "AKID2", "AKID3"]
    await client.close()


@pytest.mark.parametrize(
    "malformed",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"AccessKeyId": "a", "SecretAccessKey": "b", "Expiration": "soon"}',
        b'{"AccessKeyId": "a", "SecretAccessKey": 1, "Expiration": 2}',
        b'{"AccessKeyId": "", "SecretAccessKey": "b"}',
        b'{"AccessKeyId": "a", "SecretAccessKey": "b", "Token": "x\\r\\nHost: y"}',
        b'{"AccessKeyId": "a", "SecretAccessKey": "b", "Expiration": "2020-01-01T00:00:00Z"}',
    ],
)
async def test_malformed_or_expired_credentials_are_refused(container: Container, malformed: bytes) -> None:
    client = container.client()
    container.endpoint.script(reply(200, malformed))

    with pytest.raises(NoResponse, match="AWS credentials"):
        await client.call("GetItem", {})

    assert container.server.requests == []
    await client.close()


@pytest.mark.parametrize("url", ["http://example.com/", "ftp://127.0.0.1/", "http://10.0.0.1/", "file:///etc/passwd"])
def test_only_local_endpoints_and_https_have_credentials(url: str) -> None:
    with pytest.raises(CredentialsError, match="AWS_CONTAINER_CREDENTIALS_FULL_URI"):
        choose_provider(AwsEnvironment({"AWS_CONTAINER_CREDENTIALS_FULL_URI": url}))


async def test_a_token_that_is_no_header_is_refused(container: Container) -> None:
    client = container.client(AWS_CONTAINER_AUTHORIZATION_TOKEN="a\r\nHost: b")

    with pytest.raises(NoResponse, match="authorization token"):
        await client.call("GetItem", {})

    assert container.endpoint.requests == []
    await client.close()


async def test_profiles_are_read_by_botocore(
    server: DynamoDBServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "credentials").write_text("[work]\naws_access_key_id = AKIDWORK\naws_secret_access_key = s\n")
    (tmp_path / "config").write_text("[profile work]\nregion = eu-west-3\n")
    variables = {
        "AWS_SHARED_CREDENTIALS_FILE": f"{tmp_path}/credentials",
        "AWS_CONFIG_FILE": f"{tmp_path}/config",
        "AWS_PROFILE": "work",
    }
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    client = DynamoDBClient(AwsEnvironment(variables | {"AWS_ENDPOINT_URL": server.url}))

    await client.call("GetItem", {})

    assert server.requests[0].access_key == "AKIDWORK"
    assert "/eu-west-3/dynamodb/" in server.requests[0].headers["authorization"]
    await client.close()


async def test_no_credentials_at_all_are_an_error(
    server: DynamoDBServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, f"{tmp_path}/none")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = make_client(server, variables={"AWS_ACCESS_KEY_ID": ""})

    with pytest.raises(NoResponse, match="There are no AWS credentials"):
        await client.call("GetItem", {})

    assert server.requests == []
    await client.close()


async def test_a_caller_that_is_cancelled_does_not_end_the_refresh(container: Container) -> None:
    gate = asyncio.Event()
    container.endpoint.script((gate, document("AKID1", 3600)))
    client = container.client()
    first, second = (asyncio.create_task(client.call("GetItem", {})) for _ in range(2))
    await container.endpoint.until_received(1)
    first.cancel()
    gate.set()
    await second

    assert container.keys == ["AKID1"]
    assert len(container.endpoint.requests) == 1
    await client.close()


class Slow:
    """A provider that waits for a test."""

    def __init__(self) -> None:
        self.started, self.gate, self.aborted = threading.Event(), threading.Event(), threading.Event()
        self.loads = 0

    async def load(self, *, renewed: bool) -> Credentials:
        self.loads += 1
        self.started.set()
        try:
            await asyncio.to_thread(self.gate.wait)
        except asyncio.CancelledError:
            self.aborted.set()
            raise
        return Credentials("AKIDSLOW", "s", expires_at=time.time() + 3600)


@pytest.mark.parametrize("ended", [False, True])
def test_event_loops_share_a_refresh_and_survive_the_end_of_the_one_that_began_it(ended: bool) -> None:
    provider = Slow()
    credentials = RefreshedCredentials(provider)
    found: list[Credentials] = []
    waiting = threading.Event()

    async def begin() -> None:
        task = asyncio.create_task(credentials.get())
        await asyncio.to_thread(waiting.wait)
        if not ended:
            found.append(await task)

    async def read() -> None:
        task = asyncio.create_task(credentials.get())
        for _ in range(3):
            await asyncio.sleep(0)
        waiting.set()
        if ended:
            await asyncio.to_thread(provider.aborted.wait)
        provider.gate.set()
        found.append(await task)

    beginning = threading.Thread(target=asyncio.run, args=(begin(),))
    beginning.start()
    provider.started.wait()
    asyncio.run(read())
    beginning.join()

    assert len(found) == 2 - ended
    assert {each.access_key for each in found} == {"AKIDSLOW"}
    assert provider.loads == 1 + ended


def test_a_refresh_that_is_cancelled_before_its_first_step_leaves_no_caller_waiting() -> None:
    provider = Slow()
    provider.gate.set()
    credentials = RefreshedCredentials(provider)

    async def begin() -> None:
        before = asyncio.all_tasks()
        caller = asyncio.create_task(credentials.get())
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - before:
            task.cancel()
        await asyncio.gather(caller, return_exceptions=True)

    async def read() -> Credentials:
        async with asyncio.timeout(10):
            return await credentials.get()

    asyncio.run(begin())

    assert asyncio.run(read()).access_key == "AKIDSLOW"
    assert provider.loads == 1


async def test_a_token_that_is_no_text_is_refused(container: Container, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"\xff\xfe")
    client = container.client(AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(file))

    with pytest.raises(NoResponse, match="TOKEN_FILE cannot be read"):
        await client.call("GetItem", {})


QUOTED = "The signature does not match.\n\nThe Canonical String for this request should have been\n'POST\n/\n\n"


@pytest.mark.parametrize(
    "answer",
    [
        error("InvalidSignatureException", message=f"{QUOTED}x-amz-security-token:token-of-the-session'"),
        error("AccessDeniedException", message="no"),
        reply(400, b"?"),
        (None,),
        ok({}, **{"x-amz-crc32": "1"}),
    ],
)
async def test_secrets_are_neither_in_errors_nor_in_logs(
    server: DynamoDBServer, caplog: pytest.LogCaptureFixture, answer: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    key, secret, token = "AKIDSECRET", "secret-of-the-key", "token-of-the-session"
    client = make_client(
        server, variables={"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": token}
    )
    server.script(answer, answer, answer)
    with pytest.raises((DynamoDBError, NoResponse)) as raised:
        await client.call("GetItem", {})

    said = [repr(Credentials(key, secret, token)), repr(client), repr(AwsEnvironment({"A": secret}))]
    cause: BaseException | None = raised.value
    while cause is not None:
        said += [str(cause), repr(cause)]
        cause = cause.__cause__ or cause.__context__
    assert not [text for text in [*said, caplog.text] for secret in SECRETS if secret in text]
    await client.close()


@pytest.mark.parametrize(
    "code", ["InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed", "RequestInTheFuture"]
)
async def test_the_clock_of_the_server_is_taken_over_once(server: DynamoDBServer, pauses: Pauses, code: str) -> None:
    client = make_client(server, sleep=pauses, now=lambda: 1_000_000_000)
    date = {"Date": "Sun, 09 Sep 2001 02:46:40 GMT"}  # an hour later
    server.script(error(code, headers=date), ok(), ok(), error(code, headers=date))
    await client.call("GetItem", {})
    await client.call("GetItem", {})
    with pytest.raises(DynamoDBError, match=code):
        await client.call("GetItem", {})

    dates = [request.headers["x-amz-date"] for request in server.requests]
    assert dates == ["20010909T014640Z", *["20010909T024640Z"] * 3]
    assert pauses.seconds == []
    await client.close()


async def test_concurrent_calls_take_over_the_clock_of_the_server(server: DynamoDBServer) -> None:
    client = make_client(server, now=lambda: 1_000_000_000)
    refusal = error("InvalidSignatureException", headers={"Date": "Sun, 09 Sep 2001 02:46:40 GMT"})
    all_sent = asyncio.Event()
    server.script(*[(all_sent, refusal)] * 3)
    calls = [asyncio.create_task(client.call("GetItem", {})) for _ in range(3)]
    await server.until_received(3)
    all_sent.set()

    assert await asyncio.gather(*calls) == [{}] * 3
    dates = [request.headers["x-amz-date"] for request in server.requests]
    assert dates == [*["20010909T014640Z"] * 3, *["20010909T024640Z"] * 3]
    await client.close()


async def test_a_process_that_was_suspended_before_it_sent_a_request_signs_it_again(server: DynamoDBServer) -> None:
    times = iter([1_000_000_000.0, *[1_000_003_600.0] * 3])
    client = make_client(server, now=lambda: next(times))
    server.script(error("InvalidSignatureException", headers={"Date": "Sun, 09 Sep 2001 02:46:40 GMT"}))

    assert await client.call("GetItem", {}) == {}
    assert [each.headers["x-amz-date"] for each in server.requests] == ["20010909T014640Z", "20010909T024640Z"]
    await client.close()


@pytest.mark.parametrize("date", ["Sun, 09 Sep 2001 01:47:40 GMT", "yesterday", OUT_OF_RANGE, ""])
async def test_a_wrong_signature_at_the_right_time_is_an_error(server: DynamoDBServer, date: str) -> None:
    client = make_client(server, now=lambda: 1_000_000_000)
    server.script(error("InvalidSignatureException", headers={"Date": date}))

    with pytest.raises(DynamoDBError, match="InvalidSignatureException"):
        await client.call("GetItem", {})

    assert len(server.requests) == 1
    await client.close()
