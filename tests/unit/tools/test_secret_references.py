import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import boto3
import pytest
from aws_lambda_powertools.utilities.parameters.base import (  # type: ignore[attr-defined]
    DEFAULT_PROVIDERS,
)
from moto import mock_aws

from stint.bootstrap.registered_secrets import make_key, read_registered_secret
from stint.domain.errors import InvalidRequest
from stint.domain.inference import ToolSignature
from stint.domain.known_secrets import begin_request, redact
from stint.tools.encrypted_credentials import EncryptedCredentials
from stint.tools.masking import mask
from stint.tools.port import Invocation, Toolgroup, ToolOutcome
from stint.tools.redaction import RedactedProviders
from stint.tools.secret_references import ResolvedProviders, SecretReferences

ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:stint/acme/crm"
VALUE = "tok-1234567890"


@dataclass
class Recorder:
    """A provider that keeps the configurations of its calls, and repeats them as results."""

    seen: list[dict[str, Any]] = field(default_factory=list)

    async def check(self, toolgroup: Toolgroup, /) -> None:
        pass

    def known_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature] | None:
        return []

    async def list_tools(self, toolgroup: Toolgroup, provider_data: dict[str, Any], /) -> list[ToolSignature]:
        self.seen.append(toolgroup.config | {"endpoint": toolgroup.mcp_endpoint})
        return []

    async def invoke(self, toolgroup: Toolgroup, invocation: Invocation, /) -> ToolOutcome:
        self.seen.append(toolgroup.config)
        return ToolOutcome(json.dumps(toolgroup.config))


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a client of Secrets Manager, served by moto."""
    for name in [each for each in os.environ if each.startswith("AWS_ENDPOINT_URL")]:
        monkeypatch.delenv(name)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    DEFAULT_PROVIDERS.clear()  # Powertools keeps the client of the first secret that this process read
    begin_request()
    make_key.cache_clear()
    with mock_aws():
        yield boto3.client("secretsmanager")
    DEFAULT_PROVIDERS.clear()
    make_key.cache_clear()
    begin_request()


def store(secrets: Any, value: str, name: str = "stint/acme/crm") -> str:
    return str(secrets.create_secret(Name=name, SecretString=value)["ARN"])


def group(reference: str) -> Toolgroup:
    config = {"tools": [{"headers": {"Authorization": f"Bearer {reference}"}}]}
    return Toolgroup("crm", "p", None, config, registered=True)


def provider(recorder: Recorder, tenant: str = "acme") -> Any:
    redacted = RedactedProviders({"p": recorder})
    references = SecretReferences(tenant, read_registered_secret)
    return ResolvedProviders(redacted, references, EncryptedCredentials(tenant, None), no_vaults)["p"]


def no_vaults() -> NoReturn:
    raise AssertionError("no toolgroup of these tests is one of a session")


async def call(recorder: Recorder, toolgroup: Toolgroup, tenant: str = "acme") -> ToolOutcome:
    outcome: ToolOutcome = await provider(recorder, tenant).invoke(toolgroup, Invocation("t", {}, "c"))
    return outcome


@pytest.mark.parametrize(("value", "suffix"), [(VALUE, ""), (json.dumps({"token": VALUE, "x": "y"}), "#token")])
async def test_a_call_gets_the_value_of_the_secret(secrets: Any, value: str, suffix: str) -> None:
    recorder, arn = Recorder(), store(secrets, value)

    await call(recorder, group(arn + suffix))

    assert recorder.seen == [{"tools": [{"headers": {"Authorization": f"Bearer {VALUE}"}}]}]


async def test_the_value_is_redacted_in_results_and_not_kept_in_the_registration(secrets: Any) -> None:
    toolgroup = group(store(secrets, VALUE))

    outcome = await call(Recorder(), toolgroup)

    assert VALUE not in str(outcome.content)
    assert VALUE not in redact(f"It was {VALUE}.")
    assert VALUE not in json.dumps(toolgroup.config)
    assert "secretsmanager" not in json.dumps(mask(toolgroup.config))


async def test_a_secret_of_another_tenant_is_neither_registered_nor_read(secrets: Any) -> None:
    recorder, toolgroup = Recorder(), group(store(secrets, VALUE))

    with pytest.raises(InvalidRequest, match="stint/evil/"):
        await provider(recorder, "evil").check(toolgroup)
    outcome = await call(recorder, toolgroup, "evil")

    assert outcome.error
    assert recorder.seen == []


@pytest.mark.parametrize("name", ["openai", "stint/acme-2/crm", "stint/acme", "other/stint/acme/crm"])
async def test_only_names_below_the_tenant_are_allowed(name: str) -> None:
    arn = ARN.replace("stint/acme/crm", name)

    with pytest.raises(InvalidRequest):
        await provider(Recorder()).check(group(arn))


async def test_a_secret_that_cannot_be_read_fails_the_call_with_its_name() -> None:
    recorder = Recorder()

    outcome = await call(recorder, group(ARN + "#token"))

    assert outcome.error
    assert "stint/acme/crm#token" in str(outcome.content)
    assert "ToolgroupSecretArns" in str(outcome.content)
    assert recorder.seen == []


def mcp_group(arn: str, *, registered: bool = True) -> Toolgroup:
    """Return a toolgroup whose endpoint and headers name a secret."""
    endpoint = f"https://crm.example/mcp?key={arn}#token"
    return Toolgroup("crm", "p", endpoint, {"headers": {"X-Key": f"{arn}#token"}}, registered=registered)


async def test_the_tools_of_an_mcp_server_are_listed_with_the_values_of_its_secrets(secrets: Any) -> None:
    recorder, toolgroup = Recorder(), mcp_group(store(secrets, json.dumps({"token": "a b/c-1234567"})))

    await provider(recorder).list_tools(toolgroup, {})

    endpoint = "https://crm.example/mcp?key=a%20b%2Fc-1234567"
    assert recorder.seen == [{"headers": {"X-Key": "a b/c-1234567"}, "endpoint": endpoint}]
    assert provider(recorder).known_tools(toolgroup, {}) is None


async def test_a_server_that_a_request_names_gets_no_secret(secrets: Any) -> None:
    recorder, arn = Recorder(), store(secrets, json.dumps({"token": VALUE}))
    toolgroup = mcp_group(arn, registered=False)

    await provider(recorder).list_tools(toolgroup, {})
    await provider(recorder).invoke(toolgroup, Invocation("t", {}, "c"))

    assert VALUE not in str(recorder.seen)
    assert len(recorder.seen) == 2


async def test_an_endpoint_names_no_secret_of_another_tenant() -> None:
    with pytest.raises(InvalidRequest) as refused:
        await provider(Recorder(), "evil").check(Toolgroup("crm", "p", f"https://crm.example/mcp?key={ARN}"))

    assert refused.value.param == "mcp_endpoint"
