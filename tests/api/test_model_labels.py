"""The names of the caller, the agent and the end user in the requests to Bedrock, which its invocation log shows."""

from hashlib import sha256
from typing import Any

import httpx
import pytest
from tests.api.api_client import create_agent, create_session, say
from tests.api.app_fixture import AppFixture
from tests.servers.converse_stream import ConverseStreamServer

MODEL = "bedrock/amazon.nova-pro-v1:0"
ANN, BOB = "ann@example.com", "bob"


def labels_in(bedrock: ConverseStreamServer) -> dict[str, str]:
    """Return the metadata of the last request, which names no end user in plain text."""
    assert not any(ANN in str(body) for body in bedrock.bodies)
    labels: dict[str, str] = bedrock.bodies[-1]["requestMetadata"]
    return labels


def hash_of(tenant: str, user: str) -> str:
    return sha256(f"{tenant}:{user}".encode()).hexdigest()[:32]


def as_ann() -> dict[str, str]:
    return {"x-stint-user": ANN}


def test_a_turn_names_its_agent_and_the_end_user_by_a_hash(
    http: httpx.Client, app_fixture: AppFixture, bedrock: ConverseStreamServer
) -> None:
    agent = create_agent(http, model=MODEL)
    session = create_session(http, agent)
    body = {"messages": [{"role": "user", "content": "Hello"}]}

    assert say(http, session, "Hello").status_code == 200
    plain = labels_in(bedrock)
    assert http.post(f"{session}/turn", json=body, headers=as_ann()).status_code == 200

    tenant = plain["tenant"]
    assert plain == {"tenant": tenant, "agent_id": agent}
    assert labels_in(bedrock) == plain | {"user_hash": hash_of(tenant, ANN)}


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize(
    ("fields", "headers", "user"),
    [
        ({}, {}, None),
        ({"safety_identifier": ANN, "user": BOB}, {}, ANN),
        ({"user": BOB}, as_ann(), BOB),
        ({}, as_ann(), ANN),
    ],
)
def test_a_response_names_the_end_user_of_its_request_by_a_hash(
    http: httpx.Client,
    app_fixture: AppFixture,
    bedrock: ConverseStreamServer,
    fields: dict[str, Any],
    headers: dict[str, str],
    user: str | None,
    background: bool,
) -> None:
    body = {"model": MODEL, "input": "Hello", "background": background} | fields

    answer = http.post("/v1/responses", json=body, headers=headers)
    if background:
        app_fixture.work_off()

    assert answer.status_code == 200, answer.text
    labels = labels_in(bedrock)
    tenant = labels["tenant"]
    assert labels == {"tenant": tenant} | ({"user_hash": hash_of(tenant, user)} if user else {})


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions"])
def test_a_completion_names_the_end_user_of_its_request_by_a_hash(
    http: httpx.Client, bedrock: ConverseStreamServer, path: str
) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello"}], "prompt": "Hello", "user": ANN}

    assert http.post(path, json=body).status_code == 200

    labels = labels_in(bedrock)
    assert labels == {"tenant": labels["tenant"], "user_hash": hash_of(labels["tenant"], ANN)}
