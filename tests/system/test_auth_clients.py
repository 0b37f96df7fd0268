"""`make run AUTH=on` with the unmodified clients: what a key may do, and how each client says that it may not."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import llama_stack_client
import openai
import pytest
from infra.local.engine import ROOT
from llama_stack_client import LlamaStackClient
from openai import OpenAI
from tests.system.run_process import Run, clean_shell

KEY = re.compile(r"stk_[0-9a-f]{32}_[0-9a-f]{64}")
MODEL = "scripted/demo"
PATHS = {"PYTHONPATH": "layers/core:."}


class AuthorizedRun:
    """A running cloud with AUTH=on. `key` is the one that it printed."""

    def __init__(self, run: Run) -> None:
        self.run = run
        (self.key,) = {found for line in run.lines for found in KEY.findall(line)}

    def openai(self, key: str) -> OpenAI:
        http = openai.DefaultHttpxClient(trust_env=False)
        return OpenAI(base_url=f"{self.run.url}/v1", api_key=key, http_client=http, max_retries=0)

    def llama(self, key: str) -> LlamaStackClient:
        http = httpx.Client(trust_env=False)
        return LlamaStackClient(base_url=self.run.url, api_key=key, http_client=http, max_retries=0)

    def create_key(self, **fields: object) -> dict[str, Any]:
        """Create a key with the first one."""
        headers = {"authorization": f"Bearer {self.key}"}
        created = httpx.post(f"{self.run.url}/v1/admin/keys", json=fields, headers=headers, trust_env=False, timeout=60)
        assert created.status_code == 200, created.text
        document: dict[str, Any] = created.json()
        return document


@pytest.fixture(scope="module", params=["shared", "lambda"])
def cloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuthorizedRun]:
    shell = {"STINT_SCRIPTED_WORD_SECONDS": "0.005", **PATHS}
    options = ("--auth", "on", "--concurrency", request.param)
    run = Run(tmp_path_factory.mktemp(request.param), 0, *options, shell=shell)
    run.read_until("Ctrl-C stops")
    yield AuthorizedRun(run)
    run.stop()


def test_openais_client_creates_responses_streams_and_files(cloud: AuthorizedRun) -> None:
    with cloud.openai(cloud.create_key(scopes=["use"])["key"]) as client:
        response = client.responses.create(model=MODEL, input="hello")
        streamed = [event.type for event in client.responses.create(model=MODEL, input="hello", stream=True)]
        file = client.files.create(file=("a.txt", b"Llamas hum."), purpose="assistants")

        assert response.output_text
        assert streamed[-1] == "response.completed"
        assert client.files.content(file.id).read() == b"Llamas hum."


def test_llama_stacks_client_runs_turns(cloud: AuthorizedRun) -> None:
    with cloud.llama(cloud.create_key(scopes=["use"])["key"]) as client:
        config: Any = {"model": MODEL, "instructions": "Answer briefly."}
        agent = client.agents.create(agent_config=config).agent_id
        session = client.agents.session.create(agent, session_name="s").session_id
        messages: Any = [{"role": "user", "content": "hello"}]
        turn: Any = client.agents.turn.create(session, agent_id=agent, messages=messages, stream=False)
        events = list(client.agents.turn.create(session, agent_id=agent, messages=messages, stream=True))

        assert turn.output_message.content
        assert events[-1].event.payload.event_type == "turn_complete"


def test_both_clients_find_their_own_api_at_the_paths_of_agents(cloud: AuthorizedRun) -> None:
    key = cloud.create_key(scopes=["use"])["key"]
    with cloud.openai(key) as client:
        saved = client.beta.agents.create(model=MODEL, instructions="Answer briefly.")
        listed = [agent.id for agent in client.beta.agents.list()]
        events = client.beta.agents.sessions.create(
            agent_id=saved.id, environment={"type": "none"}, input="hello", stream=True
        )
        kinds = [event.type for event in events]
    with cloud.llama(key) as llama:
        read = llama.get(f"/v1/agents/{saved.id}", cast_to=httpx.Response).json()

    assert saved.id in listed
    assert (saved.object, read["agent_config"]["model"]) == ("agent", MODEL)
    assert (kinds[0], kinds[-1]) == ("agent.session.created", "agent.session.idle")


def test_a_key_that_may_only_use_the_api_reads_vaults_and_changes_none(cloud: AuthorizedRun) -> None:
    keys = [cloud.create_key(scopes=scopes)["key"] for scopes in (["use"], ["use", "registry:write"])]
    with cloud.openai(keys[0]) as user, cloud.openai(keys[1]) as writer:
        vault = writer.beta.agents.vaults.create(name="Ann")
        auth: Any = {"type": "static_bearer", "token": "the-token-of-ann", "mcp_server_url": "http://127.0.0.1:9/mcp"}
        made = writer.beta.agents.vaults.credentials.create(vault.id, name="docs", auth=auth)

        assert user.beta.agents.vaults.credentials.retrieve(made.id, vault_id=vault.id) == made
        with pytest.raises(openai.PermissionDeniedError):
            user.beta.agents.vaults.create(name="Bob")
        with pytest.raises(openai.PermissionDeniedError):
            user.beta.agents.vaults.delete(vault.id)


def test_a_key_that_may_only_use_the_api_creates_and_runs_an_automation(cloud: AuthorizedRun) -> None:
    said: Any = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}]
    target: Any = {"type": "new_session", "environment": {"type": "none"}, "agent": {"model": MODEL}, "input": said}
    with cloud.openai(cloud.create_key(scopes=["use"])["key"]) as client:
        automations = client.beta.agents.automations
        made = automations.create(type="once", name="Once", run_at=4_000_000_000, target=target)
        run = automations.invocations.create(made.id)

        assert automations.invocations.retrieve(run.id, automation_id=made.id).source.type == "manual"
        assert automations.pause(made.id).status == "paused"
        assert automations.resume(made.id).status == "active"
        assert automations.delete(made.id).deleted


@pytest.mark.parametrize("key", ["stk_wrong", f"stk_{'0' * 32}_{'0' * 64}", "sk-of-somebody-else"])
def test_a_wrong_key_is_an_authentication_error_in_both_clients(cloud: AuthorizedRun, key: str) -> None:
    with cloud.openai(key) as client, pytest.raises(openai.AuthenticationError) as refused:
        client.models.list()
    with cloud.llama(key) as client, pytest.raises(llama_stack_client.AuthenticationError):
        client.models.list()

    assert refused.value.code == "unauthorized"
    assert refused.value.response.headers["www-authenticate"] == "Bearer"


def test_a_key_without_the_scope_is_a_permission_error_in_both_clients(cloud: AuthorizedRun) -> None:
    key = cloud.create_key(scopes=["use"])["key"]

    with cloud.openai(key) as client, pytest.raises(openai.PermissionDeniedError):
        client.vector_stores.create(name="shared")
    with cloud.llama(key) as client, pytest.raises(llama_stack_client.PermissionDeniedError):
        client.toolgroups.register(toolgroup_id="mcp::a", provider_id="model-context-protocol")


def test_a_revoked_or_expired_key_that_was_not_used_is_refused_at_once(cloud: AuthorizedRun) -> None:
    revoked = cloud.create_key()
    command = [sys.executable, "-m", "stint.cli", "keys", "revoke", revoked["id"], "--state", str(cloud.run.state)]
    environment = clean_shell() | PATHS

    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)

    assert "up to 60 seconds" in done.stdout
    with cloud.openai(revoked["key"]) as client, pytest.raises(openai.AuthenticationError):
        client.models.list()


@pytest.mark.parametrize("example", ["conversation", "file_search", "rag", "responses"])
def test_the_examples_take_the_key_from_the_environment(cloud: AuthorizedRun, example: str) -> None:
    command = [sys.executable, str(ROOT / "docs" / "examples" / f"{example}.py"), cloud.run.url]
    environment = clean_shell() | {"NO_PROXY": "*"}

    done = subprocess.run(
        command, env=environment | {"STINT_API_KEY": cloud.key}, capture_output=True, text=True, timeout=120
    )
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    assert refused.returncode == 1


def test_health_and_descriptions_of_the_server_alone_need_no_key(cloud: AuthorizedRun) -> None:
    routes = json.loads((ROOT / "docs" / "openapi.json").read_text())["paths"]
    with httpx.Client(base_url=cloud.run.url, trust_env=False, timeout=60) as client:
        statuses = {
            (method, path): client.request(method.upper(), re.sub(r"{[^}]+}", "x", path)).status_code
            for path, methods in routes.items()
            for method in methods
        }

    assert {route for route, status in statuses.items() if status != 401} == {
        ("get", "/.well-known/agent-card.json"),
        ("get", "/v1/health"),
        ("get", "/v1/mcp/.well-known/oauth-protected-resource"),
        ("get", "/v1/openapi.json"),  # on this machine only, beside /docs
    }
    assert len(statuses) > 80


def test_the_first_key_is_printed_once(tmp_path: Path) -> None:
    printed = []
    for _ in range(2):
        run = Run(tmp_path, 0, "--auth", "on", shell=PATHS)
        run.read_until("Ctrl-C stops")
        run.stop()
        printed.append("".join(run.lines))

    assert KEY.search(printed[0])
    assert not KEY.search(printed[1])
    assert f"keys create --state {tmp_path}" in printed[1]
