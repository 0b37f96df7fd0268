"""Vaults with OpenAI's client, and sessions whose MCP servers get credentials of them."""

import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI
from tests.api.agents_api_client import OpenStream
from tests.api.api_client import assert_error, user
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import MODEL, openai_client
from tests.clock import CLOCK
from tests.servers.kms import KEY, KmsServer
from tests.servers.oauth import CLIENT, OAuthServer
from tests.store.tenant_records import read_records

from stint.net.guard import Guard
from stint.tools.mcp.provider import McpTools

NONE: Any = {"type": "none"}
TOKEN, OLD, REFRESH = "right-token", "old-access-token", "refresh-token-0"
ADD = 'call: add {"a": 1, "b": 2}'
ECHO = 'call: header {"name": "authorization"}'
BETA = {"OpenAI-Beta": "agents=v1"}


@pytest.fixture
def client(server: Served, app_fixture: AppFixture, kms: KmsServer) -> Iterator[OpenAI]:
    """Yield a client of a stack that has a key, and whose guard allows this machine."""
    before = app_fixture.settings
    allowed = {"credentials_key_arn": KEY, "allowed_hosts": "127.0.0.1"}
    app_fixture.settings = before.model_copy(update=allowed)
    app_fixture.tool_providers = {"model-context-protocol": McpTools(Guard(["127.0.0.1"]))}
    app_fixture.made.clear()
    with openai_client(server) as client:
        yield client
    app_fixture.settings, app_fixture.tool_providers = before, None


def tool(url: str, **fields: Any) -> Any:
    return {"type": "mcp", "server_label": "sums", "transport": {"type": "http", "server_url": url}} | fields


def bearer(url: str, token: str = TOKEN) -> Any:
    return {"type": "static_bearer", "token": token, "mcp_server_url": url}


def call(client: OpenAI, said: str, tools: list[Any], **fields: Any) -> tuple[str | None, Any]:
    """Return the output of the call of a new session, and the events of its turn."""
    agent: Any = {"model": MODEL, "tools": tools}
    events = [*client.beta.agents.sessions.create(environment=NONE, agent=agent, input=said, stream=True, **fields)]
    items = [each.item for each in events if each.type.endswith("item.done")]
    return next(iter(outputs_of(items)), None), events


def outputs_of(items: list[Any]) -> list[str]:
    """Return the texts of the calls of MCP servers."""
    return [item.output[0]["text"] for item in items if item.type == "mcp_call"]


def test_vaults_and_credentials_are_managed_with_the_client(client: OpenAI) -> None:
    vaults = client.beta.agents.vaults
    vault = vaults.create(name=" Team ", metadata={"team": "a"})
    vaults.create()
    made = vaults.credentials.create(vault.id, name="docs", auth=bearer("https://example.com/mcp"))

    assert (vault.name, vault.object, vaults.retrieve(vault.id)) == ("Team", "vault", vault)
    assert [each.id for each in vaults.list(metadata={"team": "a"})] == [vault.id]
    assert len(list(vaults.list(limit=1))) == 2
    assert list(vaults.list(status="archived")) == []
    assert vaults.update(vault.id, name=None).name is None
    assert (made.object, made.auth.type) == ("vault.credential", "static_bearer")
    assert list(vaults.credentials.list(vault.id, status=["active"])) == [made]
    rotated = vaults.credentials.update(made.id, vault_id=vault.id, auth={"type": "static_bearer", "token": TOKEN})
    assert vaults.credentials.retrieve(made.id, vault_id=vault.id) == rotated
    assert vaults.credentials.delete(made.id, vault_id=vault.id).object == "vault.credential.deleted"
    assert vaults.delete(vault.id).object == "vault.deleted"
    with pytest.raises(openai.NotFoundError):
        vaults.retrieve(vault.id)


def test_a_session_calls_a_server_with_a_credential_of_its_vault(client: OpenAI, mcp_server: str) -> None:
    url = f"{mcp_server}/private/mcp"
    vault = client.beta.agents.vaults.create()
    credential = client.beta.agents.vaults.credentials.create(vault.id, name="sums", auth=bearer(url))

    output, events = call(client, ADD, [tool(url, required=True)], vault_ids=[vault.id])
    chosen, _ = call(client, ADD, [tool(url, required=True, credential_id=credential.id)], vault_ids=[vault.id])
    elsewhere, _ = call(client, ECHO, [tool(f"{mcp_server}/mcp")], vault_ids=[vault.id])

    assert (output, chosen, elsewhere) == ("3", "3", "None")
    assert events[0].session.vault_ids == [vault.id]
    assert client.beta.agents.sessions.retrieve(events[0].session.id).vault_ids == [vault.id]


def test_a_later_turn_keeps_the_vaults_of_an_updated_session(client: OpenAI, mcp_server: str) -> None:
    url = f"{mcp_server}/private/mcp"
    vault = client.beta.agents.vaults.create()
    client.beta.agents.vaults.credentials.create(vault.id, name="sums", auth=bearer(url))
    saved = client.beta.agents.create(model=MODEL)
    create = client.beta.agents.sessions.create
    events = [*create(environment=NONE, agent_id=saved.id, input="Hello", vault_ids=[vault.id], stream=True)]
    session_id = events[0].session.id

    updated = client.beta.agents.sessions.update(session_id, agent={"tools": [tool(url, required=True)]})
    with client.beta.agents.sessions.stream(session_id, input=ADD) as stream:
        items = [event.item for event in stream if event.type == "agent.session.turn.item.done"]

    assert updated.vault_ids == [vault.id]
    assert outputs_of(items) == ["3"]


def test_a_turn_of_october_2024_renews_the_token_of_its_session(
    client: OpenAI, http: httpx.Client, mcp_server: str
) -> None:
    url = f"{mcp_server}/private/mcp"
    saved = client.beta.agents.create(model=MODEL, tools=[tool(url, required=True)])
    with OAuthServer() as oauth:
        refresh: Any = {"client_id": CLIENT, "refresh_token": REFRESH, "token_endpoint": oauth.url}
        refresh |= {"token_endpoint_auth": {"type": "none"}}
        end = datetime.fromtimestamp(time.time() + 1_800, UTC).isoformat()
        auth: Any = {"type": "mcp_oauth", "access_token": TOKEN, "mcp_server_url": url, "refresh": refresh}
        vault = client.beta.agents.vaults.create()
        client.beta.agents.vaults.credentials.create(vault.id, name="sums", auth=auth | {"expires_at": end})
        create = client.beta.agents.sessions.create
        first = [*create(environment=NONE, agent_id=saved.id, vault_ids=[vault.id], input="Hello", stream=True)]
        before = len(oauth.forms)
        CLOCK.move(1_800)
        body = {"agent_id": saved.id, "session_id": first[0].session.id, "messages": [user(ADD)]}
        turn = http.post("/agents/turn/create", json=body).json()["event"]["payload"]["turn"]

    [execution] = [step for step in turn["steps"] if step["step_type"] == "tool_execution"]
    assert [each["content"] for each in execution["tool_responses"]] == [["3"]]
    assert (before, len(oauth.forms)) == (0, 1)


def test_no_secret_is_in_a_stream_a_trace_or_a_webhook(
    client: OpenAI, http: httpx.Client, server: Served, app_fixture: AppFixture, mcp_server: str
) -> None:
    url, hook = f"{mcp_server}/private/mcp", "http://127.0.0.1:9/hook"
    body: dict[str, Any] = {"name": "shop", "url": hook, "event_types": ["agent.session.idle"]}
    signing = http.post("/v1/webhook_endpoints", json=body).json()["signing_secret"]
    vault = client.beta.agents.vaults.create()
    client.beta.agents.vaults.credentials.create(vault.id, name="sums", auth=bearer(url))
    inline = tool(url, required=True)
    inline["transport"] |= {"authorization": TOKEN, "headers": {"x-api-key": "header-key"}}
    written: list[str] = []
    for fields, said in product(({"vault_ids": [vault.id]}, {}), (ADD, ECHO)):
        agent = {"model": MODEL, "tools": [tool(url, required=True) if fields else inline]}
        body = {"environment": NONE, "agent": agent, "input": said, "stream": True} | fields
        answer = http.post("/v1/agents/sessions", json=body, headers=BETA).text
        assert ("Bearer ***" if said == ECHO else '"text":"3"') in answer
        session_id = json.loads(answer.split("data: ")[1].splitlines()[0])["session"]["id"]
        first = answer.split("\nid: ")[1].splitlines()[0]
        with OpenStream(server, session_id, first, stop="agent.session.idle") as again:
            again.wait_for("idle")
        traces = http.get(f"/v1/agents/sessions/{session_id}/traces", headers=BETA).text
        assert "resourceSpans" in traces
        written += [answer, json.dumps(again.events), traces]
    assert app_fixture.queue.webhooks
    written.append(str(app_fixture.queue.webhooks))

    everywhere = "".join(written)
    assert [secret for secret in (TOKEN, "header-key", signing, signing[6:]) if secret in everywhere] == []


def test_no_secret_is_in_an_answer_a_log_or_a_record(
    client: OpenAI,
    http: httpx.Client,
    app_fixture: AppFixture,
    mcp_server: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    url = f"{mcp_server}/private/mcp"
    with OAuthServer() as oauth:
        refresh = {"client_id": CLIENT, "refresh_token": REFRESH, "token_endpoint": oauth.url}
        auth: Any = {
            "type": "mcp_oauth",
            "access_token": OLD,
            "mcp_server_url": url,
            "refresh": refresh
            | {"token_endpoint_auth": {"type": "client_secret_post", "client_secret": "client-secret"}},
        }
        vault = client.beta.agents.vaults.create()
        made = client.beta.agents.vaults.credentials.create(vault.id, name="sums", auth=auth)
        answers = [call(client, said, [tool(url, required=True)], vault_ids=[vault.id]) for said in (ADD, ECHO)]
        renewed = client.beta.agents.vaults.credentials.retrieve(made.id, vault_id=vault.id)

    session_id = answers[1][1][0].session.id
    paths = [f"/v1/agents/sessions/{session_id}{part}" for part in ("", "/items", "/turns")]
    paths += ["/v1/vaults", f"/v1/vaults/{vault.id}/credentials"]
    texts = [made.to_json(), renewed.to_json(), str(answers), *(http.get(path, headers=BETA).text for path in paths)]
    records = str(read_records(app_fixture.dynamodb, app_fixture.settings.table, app_fixture.tenant))

    assert (answers[0][0], answers[1][0], len(oauth.forms)) == ("3", "Bearer ***", 1)
    everywhere = f"{texts} {caplog.text} {records}"
    secrets = (TOKEN, OLD, REFRESH, "refresh-token-1", "client-secret")
    own = everywhere.replace("client_secret_post", "")
    assert [secret for secret in secrets if secret in own] == []


def test_a_stack_without_a_key_stores_no_credentials(server: Served, http: httpx.Client) -> None:
    inline = tool("https://93.184.215.14/mcp")
    inline["transport"]["authorization"] = TOKEN
    session = {"environment": NONE, "input": "Hello", "agent": {"model": MODEL}}
    bodies: list[tuple[str, Any]] = [
        ("/v1/vaults", {}),
        (f"/v1/vaults/vault_{'0' * 32}/credentials", {"name": "a", "auth": bearer("https://example.com/mcp")}),
        ("/v1/agents/sessions", session | {"vault_ids": [f"vault_{'0' * 32}"]}),
        ("/v1/agents/sessions", session | {"agent": {"model": MODEL, "tools": [inline]}}),
    ]

    for path, body in bodies:
        assert_error(http.post(path, json=body, headers=BETA), 400, "credentials_key_missing")


def test_a_session_may_use_the_vaults_of_its_end_user_alone(client: OpenAI, http: httpx.Client) -> None:
    def create(vault_id: str, **headers: str) -> httpx.Response:
        body = {"environment": NONE, "input": "Hello", "agent": {"model": MODEL}, "vault_ids": [vault_id]}
        return http.post("/v1/agents/sessions", json=body, headers=BETA | headers)

    ann, bob = {"x-stint-user": "ann"}, {"x-stint-user": "bob"}
    vault = client.beta.agents.vaults.create(extra_headers=ann)

    assert create(vault.id, **ann).status_code == 200
    for answer in (create(vault.id, **bob), create(vault.id), create(f"vault_{'0' * 32}", **ann), create("x", **ann)):
        assert_error(answer, 400, "vault_not_found")
    assert http.get(f"/v1/vaults/{vault.id}", headers=bob).status_code == 404


def test_the_vaults_of_an_end_user_are_exported_and_erased(client: OpenAI, http: httpx.Client) -> None:
    vault = client.beta.agents.vaults.create(extra_headers={"x-stint-user": "ann"})
    kept = client.beta.agents.vaults.create()
    made = client.beta.agents.vaults.credentials.create(vault.id, name="a", auth=bearer("http://127.0.0.1:9/mcp"))

    listed = http.get("/v1/admin/users/ann").json()["data"]
    exported = http.get("/v1/admin/users/ann/export").text
    erased = http.delete("/v1/admin/users/ann").json()

    assert listed == [{"kind": "vault", "id": vault.id}]
    assert (made.id in exported, TOKEN in exported) == (True, False)
    assert (erased["deleted"], erased["complete"]) == ({"vault": 1}, True)
    assert [each.id for each in client.beta.agents.vaults.list()] == [kept.id]


@pytest.mark.parametrize(
    ("auth", "says"),
    [
        ({"type": "environment_variable", "secret_name": "A", "secret_value": "long-secret"}, "static_bearer"),
        (bearer("http://169.254.169.254/mcp"), "169.254.169.254"),
        (bearer("https://example.com/mcp", "Bearer right-token"), "without its scheme"),
        (bearer("https://example.com/mcp", "short"), "8 to 4,096"),
        (bearer("https://example.com/mcp", "a-token\r\nx: y"), "printable"),
        (bearer("https://example.com/mcp", "********"), "replaces secrets"),
    ],
)
def test_a_credential_that_cannot_be_used_is_refused(client: OpenAI, auth: Any, says: str) -> None:
    vault = client.beta.agents.vaults.create()

    with pytest.raises(openai.BadRequestError) as refused:
        client.beta.agents.vaults.credentials.create(vault.id, name="a", auth=auth)

    assert says in refused.value.message
    assert "right-token" not in refused.value.message


def test_an_mcp_tool_has_one_source_of_its_authorization(client: OpenAI) -> None:
    both = tool("https://example.com/mcp", credential_id="cred_1")
    both["transport"]["headers"] = {"AUTHORIZATION": "x"}

    with pytest.raises(openai.BadRequestError, match="both a credential_id and an authorization"):
        client.beta.agents.create(model=MODEL, tools=[both])
