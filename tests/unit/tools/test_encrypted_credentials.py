"""Encrypted credentials of registrations, with the KMS of moto."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import boto3
import pytest
from moto import mock_aws
from tests.clock import CLOCK
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

from stint.domain.errors import InvalidRequest, StoreUnavailable
from stint.providers.kms import KmsCipher
from stint.tools.encrypted_credentials import CACHE_SECONDS, EncryptedCredentials
from stint.tools.masking import mask
from stint.tools.port import Toolgroup

TOKEN = "tok-1234567890"
CONFIG = {"timeout": 3, "headers": {"Authorization": f"Bearer {TOKEN}", "Accept": "*/*"}, "tools": [{"api_key": 12345}]}
GROUP = Toolgroup("crm", "p", f"https://ann:{TOKEN}@crm.example/mcp", CONFIG)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the ARN of a key."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with mock_aws():
        yield str(boto3.client("kms", region_name="eu-west-1").create_key()["KeyMetadata"]["Arn"])


class CountedCipher(KmsCipher):
    """Counts the calls of `decrypt`."""

    decrypted = 0

    async def decrypt(self, sealed: str, context: Mapping[str, str]) -> str:
        self.decrypted += 1
        return await super().decrypt(sealed, context)


async def test_a_stored_toolgroup_has_none_of_its_credentials(key: str) -> None:
    sealed = await EncryptedCredentials("acme", KmsCipher(key)).encrypt(GROUP)

    assert TOKEN not in str(sealed)
    assert "12345" not in json.dumps(sealed.config)
    assert sealed.config == mask(CONFIG)
    assert (sealed.config["timeout"], sealed.config["headers"]["Accept"]) == (3, "*/*")


async def test_it_is_opened_as_it_was(key: str) -> None:
    sealed = await EncryptedCredentials("acme", KmsCipher(key)).encrypt(GROUP)

    assert await EncryptedCredentials("acme", KmsCipher(key)).decrypt(sealed) == GROUP


async def test_a_process_decrypts_it_once_in_five_minutes(key: str) -> None:
    cipher = CountedCipher(key)
    credentials = EncryptedCredentials("acme", cipher)
    sealed = await credentials.encrypt(GROUP)

    assert credentials.find(sealed) is None
    for _ in range(3):
        assert await credentials.decrypt(sealed) == GROUP
    assert (cipher.decrypted, credentials.find(sealed)) == (1, GROUP)
    CLOCK.move(CACHE_SECONDS + 1)
    await credentials.decrypt(sealed)

    assert cipher.decrypted == 2


@pytest.mark.parametrize(("tenant", "identifier"), [("evil", "crm"), ("acme", "other")])
async def test_a_copy_in_another_tenant_or_registration_cannot_be_read(key: str, tenant: str, identifier: str) -> None:
    sealed = await EncryptedCredentials("acme", KmsCipher(key)).encrypt(GROUP)
    copied = Toolgroup(identifier, "p", sealed.mcp_endpoint, sealed.config, sealed.sealed)

    with pytest.raises(StoreUnavailable, match="CredentialsKeyArn"):
        await EncryptedCredentials(tenant, KmsCipher(key)).decrypt(copied)


async def test_a_toolgroup_without_credentials_is_not_encrypted(key: str) -> None:
    plain = Toolgroup("crm", "p", "https://crm.example/mcp", {"timeout": 3})

    assert await EncryptedCredentials("acme", KmsCipher(key)).encrypt(plain) == plain


async def test_credentials_over_the_limit_of_kms_are_refused_by_name(key: str) -> None:
    long = Toolgroup("crm", "p", None, {"api_key": "k" * 5_000})

    with pytest.raises(InvalidRequest, match=r"'crm' have 50.. bytes"):
        await EncryptedCredentials("acme", KmsCipher(key)).encrypt(long)


async def test_without_a_key_nothing_is_encrypted_and_what_is_cannot_be_read() -> None:
    credentials = EncryptedCredentials("acme", None)

    assert await credentials.encrypt(GROUP) == GROUP
    with pytest.raises(InvalidRequest, match="no key is configured"):
        await credentials.decrypt(Toolgroup("crm", "p", None, {}, "AQ=="))


async def test_a_key_that_does_not_exist_is_named(key: str) -> None:
    missing: Any = key.rpartition("/")[0] + "/00000000-0000-0000-0000-000000000000"

    with pytest.raises(StoreUnavailable, match="00000000-0000-0000-0000-000000000000"):
        await EncryptedCredentials("acme", KmsCipher(missing)).encrypt(GROUP)


async def test_a_connection_that_kms_closes_is_a_failure_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedHTTPServer(lambda _: Reply(status=0)) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", server.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        with pytest.raises(StoreUnavailable, match="ConnectionClosedError"):
            await KmsCipher("arn:aws:kms:eu-west-1:123456789012:key/k").encrypt("text", {"tenant": "acme"})
