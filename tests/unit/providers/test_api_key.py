"""The key of a model provider, in Secrets Manager."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from aws_lambda_powertools.utilities import parameters
from moto import mock_aws
from tests.clock import CLOCK

from stint.domain.errors import ModelUnauthorized
from stint.domain.known_secrets import begin_request, known_secrets
from stint.providers import api_key
from stint.providers.api_key import ApiKey


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    parameters.clear_caches()  # type: ignore[no-untyped-call]
    with mock_aws():
        yield boto3.client("secretsmanager")
    parameters.clear_caches()  # type: ignore[no-untyped-call]


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch) -> list[threading.Thread]:
    """The threads that read secrets."""
    threads: list[threading.Thread] = []
    read_secret = api_key.read_secret

    def read(*arguments: Any, **options: Any) -> str:
        threads.append(threading.current_thread())
        return read_secret(*arguments, **options)

    monkeypatch.setattr(api_key, "read_secret", read)
    return threads


def make_secret(secrets: Any, value: str = "sk-12345678") -> ApiKey:
    return ApiKey(secret_arn=secrets.create_secret(Name="key", SecretString=value)["ARN"])


async def test_a_key_in_plain_text_is_read_without_a_thread(fetches: list[threading.Thread]) -> None:
    assert await ApiKey("sk-12345678").read() == "sk-12345678"
    assert await ApiKey().read() is None
    assert fetches == []


async def test_a_secret_is_fetched_in_a_thread_once_in_five_minutes(
    secrets: Any, fetches: list[threading.Thread]
) -> None:
    key = make_secret(secrets)

    assert [await key.read() for _ in range(3)] == ["sk-12345678"] * 3
    CLOCK.move(299)
    await key.read()

    assert len(fetches) == 1
    assert fetches[0] is not threading.current_thread()


async def test_a_rotated_secret_is_read_after_five_minutes(secrets: Any) -> None:
    key = make_secret(secrets, '{"OPENAI_API_KEY": "sk-old-12345"}')
    await key.read()
    secrets.put_secret_value(SecretId="key", SecretString='{"OPENAI_API_KEY": "sk-new-12345"}')

    CLOCK.move(301)

    assert await key.read() == "sk-new-12345"


async def test_callers_at_once_share_one_fetch(secrets: Any, fetches: list[threading.Thread]) -> None:
    key = make_secret(secrets)

    assert await asyncio.gather(*(key.read() for _ in range(8))) == ["sk-12345678"] * 8
    assert len(fetches) == 1


async def test_a_fetch_continues_if_the_caller_that_started_it_leaves(
    secrets: Any, fetches: list[threading.Thread]
) -> None:
    key = make_secret(secrets)
    first, second = (asyncio.create_task(key.read()) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()

    assert await second == "sk-12345678"
    assert len(fetches) == 1


async def test_a_secret_that_cannot_be_read_is_tried_again_by_the_next_call(secrets: Any) -> None:
    key = ApiKey(secret_arn="arn:aws:secretsmanager:eu-west-1:123456789012:secret:key")
    with pytest.raises(ModelUnauthorized, match="OpenAiSecretArn"):
        await key.read()
    key.secret_arn = secrets.create_secret(Name="key", SecretString="sk-12345678")["ARN"]

    assert await key.read() == "sk-12345678"


async def test_each_request_redacts_the_key_also_if_it_was_fetched_before(secrets: Any) -> None:
    key = make_secret(secrets)
    await key.read()

    begin_request()
    await key.read()

    assert known_secrets() == {"sk-12345678"}


def test_a_fetch_of_a_former_event_loop_is_not_waited_for(secrets: Any, fetches: list[threading.Thread]) -> None:
    key = make_secret(secrets)

    async def leave() -> None:
        asking = asyncio.create_task(key.read())
        await asyncio.sleep(0)
        asking.cancel()

    asyncio.run(leave())

    assert asyncio.run(key.read()) == "sk-12345678"
    assert len(fetches) == 2


def test_the_key_is_not_in_the_text_of_the_object() -> None:
    key = ApiKey(secret_arn="arn")
    key._secret = "sk-12345678"

    assert "sk-12345678" not in repr(key)
