"""The health of model servers is looked at: their list of models is requested, with the key."""

import asyncio
import json
from typing import Any

import pytest
from tests.servers.embeddings import EmbeddingsServer, error
from tests.servers.scripted_http import Reply

from stint.bootstrap.adapters import Adapters
from stint.bootstrap.defaults import providers
from stint.bootstrap.provider_health import make_health_checks
from stint.domain.llama_stack.registry import Provider, ProviderHealth
from stint.services.registry.provider_health import ProviderHealthChecks
from stint.settings import read_settings

KEY = "sk-hunter2-hunter2"
UNKNOWN = ProviderHealth(status="Not Implemented", message="Provider does not implement health check")


async def look(*servers: dict[str, Any], **variables: str) -> dict[str, ProviderHealth]:
    named = json.dumps([{"key_variable": "STINT_KEY", **server} for server in servers])
    settings = read_settings({"STINT_PROVIDERS": named, "STINT_KEY": KEY, **variables})
    checks = make_health_checks(Adapters(settings))
    return {each.provider_id: each.health for each in await checks.check(providers(settings).data)}


async def test_a_server_that_lists_its_models_is_healthy_and_was_asked_with_its_key() -> None:
    with EmbeddingsServer() as server:
        health = await look({"id": "lab", "base_url": server.base_url})

    assert health["lab"] == ProviderHealth(status="OK")
    assert [(each.method, each.path) for each in server.requests] == [("GET", "/v1/models")]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("status", "shown", "says"),
    [
        (401, "Error", "answered 401 to GET /models (check the key of provider 'lab' in STINT_PROVIDERS)"),
        (403, "Error", "in STINT_PROVIDERS and its permissions"),
        (404, "Not Implemented", "it has no such list, or the base_url of provider 'lab' in STINT_PROVIDERS is wrong"),
        (429, "Error", "answered 429"),
        (500, "Error", "answered 500"),
    ],
)
async def test_a_refusal_is_an_error_that_names_the_setting_and_never_the_key(
    status: int, shown: str, says: str
) -> None:
    with EmbeddingsServer() as server:
        server.script(error(status, f"Incorrect API key provided: {KEY}"))
        health = (await look({"id": "lab", "base_url": server.base_url}))["lab"]

    assert health.status == shown
    assert says in (health.message or "")
    assert "hunter2" not in repr(health)


async def test_servers_that_cannot_be_reached_or_stay_silent_do_not_hold_up_the_others() -> None:
    with EmbeddingsServer() as good, EmbeddingsServer() as silent:
        silent.script(Reply(ending="hang", before=3600.0))
        health = await look(
            {"id": "good", "base_url": good.base_url},
            {"id": "silent", "base_url": silent.base_url},
            {"id": "closed", "base_url": "http://127.0.0.1:9/v1"},
        )

    assert health["good"].status == "OK"
    assert (health["silent"].status, health["closed"].status) == ("Error", "Error")
    assert "127.0.0.1:9" in (health["closed"].message or "")


async def test_openais_own_server_is_not_asked_without_a_key() -> None:
    health = (await look())["openai"]

    assert (health.status, "OPENAI_API_KEY" in (health.message or "")) == ("Error", True)


async def test_bedrock_needs_credentials_and_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    without = await look({"id": "oregon", "kind": "bedrock", "region": "us-west-2"})
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAHUNTER2")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hunter2")
    found = await look({"id": "oregon", "kind": "bedrock", "region": "us-west-2"})

    assert [without[name].status for name in ("bedrock", "oregon", "bedrock-guardrails")] == ["Error"] * 3
    assert [found[name].status for name in ("bedrock", "oregon", "bedrock-guardrails")] == ["OK"] * 3
    assert "us-west-2" in (found["oregon"].message or "")
    assert "hunter2" not in repr(found).lower()


def provider(name: str) -> Provider:
    return Provider(api="inference", provider_id=name, provider_type="remote::x", health=UNKNOWN)


async def test_a_result_is_kept_for_half_a_minute() -> None:
    """Providers without a check stay as they are."""
    asked, now = [0], [100.0]

    async def check() -> ProviderHealth:
        asked[0] += 1
        return ProviderHealth(status="OK")

    checks = ProviderHealthChecks({"a": check}, clock=lambda: now[0])

    for moment, expected in ((100.0, 1), (129.0, 1), (130.5, 2)):
        now[0] = moment
        shown = await checks.check([provider("a"), provider("b")])
        assert ([each.health.status for each in shown], asked[0]) == (["OK", "Not Implemented"], expected)


async def test_a_check_that_fails_or_never_ends_is_an_error_of_its_provider_only() -> None:
    async def fail() -> ProviderHealth:
        raise KeyError("sk-hunter2")

    async def hang() -> ProviderHealth:
        await asyncio.Event().wait()
        raise AssertionError

    async def succeed() -> ProviderHealth:
        return ProviderHealth(status="OK")

    checks = ProviderHealthChecks({"fails": fail, "hangs": hang, "works": succeed}, seconds=0.01)
    shown = await checks.check([provider("fails"), provider("hangs"), provider("works")])

    assert [each.health.status for each in shown] == ["Error", "Error", "OK"]
    assert "hunter2" not in repr(shown)
    assert shown[1].health.message == "No answer within 0.01 s."
