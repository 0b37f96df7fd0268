"""Models that a tenant may use, over HTTP."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture

RESPONSES = ("/v1/responses", {"input": "say: Hi"})
CHAT = ("/v1/chat/completions", {"messages": [{"role": "user", "content": "say: Hi"}]})
COMPLETIONS = ("/v1/completions", {"prompt": "say: Hi"})
INFERENCE = ("/v1/inference/chat-completion", {"messages": [{"role": "user", "content": "say: Hi"}]})
EMBEDDINGS = ("/v1/embeddings", {"input": "Hi"})


@pytest.fixture
def allow(app_fixture: AppFixture) -> Iterator[Callable[..., None]]:
    """Limit the test's tenant to models."""
    before = app_fixture.settings

    def set_models(*models: str) -> None:
        tenants = json.dumps({app_fixture.tenant: {"models": models}})
        app_fixture.settings = before.model_copy(update={"tenants": tenants})
        app_fixture.made.pop(app_fixture.tenant, None)

    yield set_models
    app_fixture.settings = before


@pytest.mark.parametrize(("path", "body"), [RESPONSES, CHAT, COMPLETIONS, INFERENCE, EMBEDDINGS])
def test_a_tenant_may_not_use_a_model_that_its_patterns_do_not_match(
    http: httpx.Client, allow: Callable[..., None], path: str, body: dict[str, Any]
) -> None:
    allow("scripted/*")
    field = "model_id" if "inference" in path else "model"
    model = "hashed/words-64" if "embeddings" in path else "recorded/any"

    refused = http.post(path, json=body | {field: model})

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "model_not_allowed")
    if path not in (EMBEDDINGS[0], INFERENCE[0]):
        assert http.post(path, json=body | {field: "scripted/demo"}).status_code == 200


def test_a_tenant_lists_its_models_alone(http: httpx.Client, allow: Callable[..., None]) -> None:
    every = {model["identifier"] for model in http.get("/v1/models").json()["data"]}
    allow("scripted/*")

    listed = {model["identifier"] for model in http.get("/v1/models").json()["data"]}

    assert {"scripted/demo", "demo"} <= listed < every
    assert not any(name.startswith("hashed/") for name in listed)
