"""Every operation that OpenAI's client has a method for, with strict validation of the answers.

The client raises for an answer that has not its type. `TYPED_OTHERWISE` lists these answers, with reasons.
"""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import reduce
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from infra.local.engine import ROOT, Engine
from infra.scripts.openapi import DOCUMENT
from openai import APIResponseValidationError, OpenAI
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import MODEL, WEATHER
from tests.servers.scripted_http import Reply, ScriptedHTTPServer

TAGS = {"Chat", "Containers", "Conversations", "Embeddings", "Files", "Responses", "Vector stores", "Webhooks"}
MESSAGES: Any = [{"role": "user", "content": "say: Hi"}]
CHAT_WEATHER: Any = {"type": "function", "function": {key: WEATHER[key] for key in ("name", "parameters")}}
WORDS = "hashed/words-384"
TEXT = ("llamas.txt", b"Llamas hum.")
NONE: Any = {"type": "none"}
WITHOUT_METHOD = {
    "GET /v1/conversations",  # an extension
    "GET /v1/responses",  # Llama Stack's
    "GET /v1/vector_stores/{vector_store_id}/files/{file_id}/chunks",  # an extension
    "GET /v1/responses/{response_id}/steps",  # an extension
    "GET /v1/responses/{response_id}/steps/{step_id}/input",  # an extension
    "GET /v1/responses/{response_id}/trace",  # an extension
    "POST /v1/responses/{response_id}/heartbeat",  # an extension
    "POST /v1/inference/embeddings",  # Llama Stack's
}
TYPED_OTHERWISE = {
    "responses.compact": "its description has messages of users, its type those of the assistant only",
    "beta.responses.compact": "as responses.compact",
    "chat.completions.messages.list": "its type has the messages of the assistant only",
    "completions.create, stream": "pieces before the last one have no finish_reason, as those of OpenAI",
    "embeddings.create, base64": "the client asks for base64, and decodes it after the validation",
}


@dataclass
class Sweep:
    """The calls of one client. `failed` has the faults of answers that have not their type, by the method."""

    client: OpenAI
    failed: dict[str, str] = field(default_factory=dict)

    def call(self, name: str, /, *args: Any, **fields: Any) -> Any:
        """Call a method, and read its stream or its pages. Return the answer, also one that has not its type."""
        client: Any = self.client
        method = reduce(getattr, name.split("."), client)
        try:
            answer: Any = method(*args, **fields)
            if fields.get("stream") or name.endswith(".stream") or hasattr(answer, "get_next_page"):
                answer = list(answer)
        except APIResponseValidationError as error:
            variant = ", stream" if fields.get("stream") else ", base64" if name == "embeddings.create" else ""
            self.failed[name + variant] = str(error.__cause__)[:600]
            return json.loads(json.dumps(error.body), object_hook=lambda found: SimpleNamespace(**found))
        return answer


def sweep_responses(sweep: Sweep, api: str) -> None:
    """Call the methods of an API, which newer clients also have as a beta."""

    def call(name: str, *args: Any, **fields: Any) -> Any:
        return sweep.call(f"{api}.{name}", *args, **fields)

    created = call("create", model=MODEL, input="say: Hi", store=True)
    call("create", model=MODEL, input="call: get_weather {}", tools=[WEATHER])
    call("create", model=MODEL, input="reason: Hmm. say: Hi", stream=True)
    call("retrieve", created.id)
    call("retrieve", created.id, stream=True)
    call("input_items.list", created.id)
    call("input_tokens.count", model=MODEL, input="two words")
    call("compact", model=MODEL, input="say: short")
    waiting = call("create", model=MODEL, input="say: Hi", background=True)
    call("cancel", waiting.id)
    call("delete", created.id)


def sweep_conversations(sweep: Sweep) -> None:
    call = sweep.call
    created = call("conversations.create", items=MESSAGES, metadata={"a": "b"})
    call("conversations.retrieve", created.id)
    call("conversations.update", created.id, metadata={"a": "c"})
    call("responses.create", model=MODEL, input="say: Hi", conversation=created.id)
    call("conversations.items.create", created.id, items=MESSAGES)
    [first, *_] = call("conversations.items.list", created.id)
    call("conversations.items.retrieve", first.id, conversation_id=created.id)
    call("conversations.items.delete", first.id, conversation_id=created.id)
    call("conversations.delete", created.id)
    empty = call("conversations.create")
    call("conversations.items.list", empty.id)


def sweep_chats(sweep: Sweep) -> None:
    call = sweep.call
    call("chat.completions.list")
    created = call("chat.completions.create", model=MODEL, messages=MESSAGES, store=True, metadata={"a": "b"})
    asked: Any = [{"role": "user", "content": "call: get_weather {}"}]
    call("chat.completions.create", model=MODEL, messages=asked, tools=[CHAT_WEATHER])
    call("chat.completions.create", model=MODEL, messages=MESSAGES, stream=True, stream_options={"include_usage": True})
    call("chat.completions.create", model=MODEL, messages=MESSAGES, logprobs=True, top_logprobs=2)
    call("chat.completions.list")
    call("chat.completions.retrieve", created.id)
    call("chat.completions.update", created.id, metadata={"a": "c"})
    call("chat.completions.messages.list", created.id)
    call("chat.completions.delete", created.id)
    call("completions.create", model=MODEL, prompt="say: Hi")
    call("completions.create", model=MODEL, prompt="say: Hi", stream=True)
    call("embeddings.create", model=WORDS, input="llamas")
    call("embeddings.create", model=WORDS, input="llamas", encoding_format="float")
    [first, *_] = call("models.list")
    call("models.retrieve", first.id)


def sweep_files(sweep: Sweep) -> None:
    call = sweep.call
    call("files.list")
    expiry: Any = {"anchor": "created_at", "seconds": 3_600}
    call("files.create", file=TEXT, purpose="assistants", expires_after=expiry)
    created = call("files.create", file=TEXT, purpose="user_data")
    call("files.retrieve", created.id)
    call("files.list")
    call("files.content", created.id)
    call("files.delete", created.id)
    about: Any = {"bytes": 11, "filename": "a.txt", "mime_type": "text/plain", "purpose": "assistants"}
    upload = call("uploads.create", **about)
    part = call("uploads.parts.create", upload.id, data=TEXT[1])
    call("uploads.complete", upload.id, part_ids=[part.id])
    call("uploads.cancel", call("uploads.create", **about).id)
    box = call("containers.create", name="box", expires_after={"anchor": "last_active_at", "minutes": 20})
    call("containers.retrieve", box.id)
    call("containers.list")
    call("containers.files.list", box.id)
    inside = call("containers.files.create", box.id, file=TEXT)
    call("containers.files.retrieve", inside.id, container_id=box.id)
    call("containers.files.list", box.id)
    call("containers.files.content.retrieve", inside.id, container_id=box.id)
    call("containers.files.delete", inside.id, container_id=box.id)
    call("containers.delete", box.id)


def sweep_vector_stores(sweep: Sweep, app_fixture: AppFixture) -> None:
    call = sweep.call
    call("vector_stores.list")
    file = call("files.create", file=TEXT, purpose="assistants").id
    bad = call("files.create", file=("llamas.pdf", b"no pdf"), purpose="assistants").id
    expiry: Any = {"anchor": "last_active_at", "days": 2}
    store = call("vector_stores.create", name="animals", metadata={"a": "b"}, expires_after=expiry).id
    call("vector_stores.files.list", store)
    call("vector_stores.files.create", store, file_id=file, attributes={"a": "b", "c": 1, "d": True})
    call("vector_stores.files.create", store, file_id=bad, chunking_strategy={"type": "auto"})
    app_fixture.ingest()
    call("vector_stores.files.retrieve", file, vector_store_id=store)
    call("vector_stores.files.update", file, vector_store_id=store, attributes={"a": "c"})
    call("vector_stores.files.list", store)
    call("vector_stores.files.content", file, vector_store_id=store)
    call("vector_stores.search", store, query="llamas")
    call("vector_stores.search", store, query=["llamas", "hum"])
    call("vector_stores.retrieve", store)
    call("vector_stores.update", store, name="other")
    call("vector_stores.list")
    batch = call("vector_stores.file_batches.create", store, file_ids=[file]).id
    call("vector_stores.file_batches.retrieve", batch, vector_store_id=store)
    call("vector_stores.file_batches.list_files", batch, vector_store_id=store)
    call("vector_stores.file_batches.cancel", batch, vector_store_id=store)
    call("vector_stores.files.delete", file, vector_store_id=store)
    call("vector_stores.delete", store)


def sweep_webhooks(sweep: Sweep, url: str) -> None:
    call, types = sweep.call, ["response.failed"]
    endpoint = call("webhooks.create", name="shop", url=url, event_types=types).id
    call("webhooks.retrieve", endpoint)
    call("webhooks.update", endpoint, name="other")
    call("webhooks.rotate_secret", endpoint)
    call("webhooks.test", endpoint, event_type="response.failed")
    call("webhooks.list")
    call("webhooks.event_types.list")
    call("webhooks.delete", endpoint)


def sweep_agents(sweep: Sweep, app_fixture: AppFixture) -> None:
    """Call the methods of the Agents API. A stream of a session ends after half a second."""
    app_fixture.settings = app_fixture.settings.model_copy(update={"session_stream_seconds": 0.5})
    app_fixture.made.clear()

    def call(name: str, /, *args: Any, **fields: Any) -> Any:
        return sweep.call(f"beta.agents.{name}", *args, **fields)

    call("list")
    tool: Any = {**WEATHER, "description": "The weather."}
    saved = call("create", model=MODEL, name="llama", instructions="Hum.", tools=[tool], metadata={"a": "b"})
    call("retrieve", saved.id)
    call("update", saved.id, metadata={"a": "c"})
    call("list")
    own: Any = {"model": MODEL, "tools": [tool]}
    session = call("sessions.create", environment=NONE, agent=own, input="call: get_weather {}").id
    app_fixture.run_waiting()
    call("sessions.create", environment=NONE, agent_id=saved.id, input="reason: Hmm. say: Hi", stream=True)
    call("sessions.list")
    waiting = call("sessions.retrieve", session)
    [action] = waiting.required_actions
    place: Any = {"turn_id": action.turn_id, "call_id": action.call_id}
    result: Any = {"type": "agent.session.input.tool_result", **place, "success": True, "output": "sunny"}
    call("sessions.events.create", session, events=[result])
    app_fixture.run_waiting()
    call("sessions.update", session, metadata={"a": "d"})
    call("sessions.events.stream", session)
    call("sessions.items.list", session)
    [turn] = call("sessions.turns.list", session)
    call("sessions.turns.retrieve", turn.id, session_id=session)
    call("sessions.turns.items.list", turn.id, session_id=session)
    call("sessions.traces.list", session)
    call("sessions.subagents.list", session)
    call("sessions.artifacts.list", session)
    call("sessions.delete", session)
    call("delete", saved.id)


def sweep_vaults(sweep: Sweep) -> None:
    def call(name: str, /, *args: Any, **fields: Any) -> Any:
        return sweep.call(f"beta.agents.vaults.{name}", *args, **fields)

    vault = call("create", name="Ann", metadata={"a": "b"}).id
    call("update", vault, metadata={"a": "c"})
    call("retrieve", vault)
    call("list")
    refresh: Any = {
        "client_id": "c",
        "refresh_token": "a-refresh-token",
        "token_endpoint": "https://93.184.215.14/token",
        "token_endpoint_auth": {"type": "client_secret_basic", "client_secret": "a-client-secret"},
    }
    token: Any = {"access_token": "an-access-token", "expires_at": "2030-01-01T00:00:00Z", "refresh": refresh}
    auth: Any = {"type": "mcp_oauth", "mcp_server_url": "https://93.184.215.14/mcp", **token}
    credential = call("credentials.create", vault, name="docs", auth=auth).id
    place: Any = {"vault_id": vault}
    call("credentials.update", credential, auth={"type": "mcp_oauth", "access_token": "another-token"}, **place)
    call("credentials.retrieve", credential, **place)
    call("credentials.list", vault)
    call("credentials.delete", credential, **place)
    call("delete", vault)


def sweep_automations(sweep: Sweep) -> None:
    def call(name: str, /, *args: Any, **fields: Any) -> Any:
        return sweep.call(f"beta.agents.automations.{name}", *args, **fields)

    said: Any = [{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}]
    agent: Any = {"model": MODEL, "instructions": "Be brief."}
    target: Any = {"type": "new_session", "environment": {"type": "none"}, "input": said, "agent": agent}
    call("create", type="once", name="Once", run_at=4_000_000_000, target=target)
    daily: Any = {"type": "periodic", "expression": "0 9 * * *", "timezone": "Europe/Oslo"}
    automation = call("create", name="Daily", target=target, metadata={"a": "b"}, **daily).id
    call("update", automation, name="Weekly", expression="0 9 * * 1")
    call("retrieve", automation)
    call("list")
    invocation = call("invocations.create", automation).id
    call("invocations.retrieve", invocation, automation_id=automation)
    call("invocations.list", automation)
    call("pause", automation)
    call("resume", automation)
    call("delete", automation)


def test_answers_have_the_types_of_openais_client(
    server: Served, app_fixture: AppFixture, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    changes = {"credentials_key_arn": engine.running.hold_credentials_key(), "allowed_hosts": "127.0.0.1"}
    monkeypatch.setattr(app_fixture, "settings", app_fixture.settings.model_copy(update=changes))
    requests: list[str] = []
    hooks: Any = {"request": [lambda request: requests.append(f"{request.method} {request.url.path}")]}
    http = httpx2.Client(trust_env=False, event_hooks=hooks)
    url = f"{server.url}/v1"
    with OpenAI(
        base_url=url, api_key="none", max_retries=0, http_client=http, _strict_response_validation=True
    ) as client:
        sweep = Sweep(client)
        sweep_responses(sweep, "responses")
        if hasattr(client.beta, "responses"):
            sweep_responses(sweep, "beta.responses")
        sweep_conversations(sweep)
        sweep_chats(sweep)
        sweep_files(sweep)
        sweep_vector_stores(sweep, app_fixture)
        with ScriptedHTTPServer(lambda _: Reply()) as receiver:
            sweep_webhooks(sweep, receiver.url)
        tags = set(TAGS)
        if hasattr(client.beta, "agents"):
            sweep_agents(sweep, app_fixture)
            sweep_vaults(sweep)
            sweep_automations(sweep)
            tags.add("OpenAI Agents")

    known = {name for name in TYPED_OTHERWISE if hasattr(client.beta, "responses") or not name.startswith("beta.")}
    assert sweep.failed.keys() == known, json.dumps(sweep.failed, indent=1)
    assert operations(tags) - {operation_of(each) for each in requests} == WITHOUT_METHOD


def operations(tags: Collection[str] = (*TAGS, "OpenAI Agents")) -> set[str]:
    """Return the operations of OpenAI's API in the OpenAPI document."""
    paths = json.loads(DOCUMENT.read_text())["paths"]
    return {
        f"{method.upper()} {path}"
        for path, methods in paths.items()
        for method, operation in methods.items()
        if set(tags) & set(operation["tags"]) or (path.startswith("/v1/models") and method == "get")
    }


def operation_of(request: str) -> str:
    """Return the operation of a request. Ids of models contain slashes."""
    matching = [
        each
        for each in operations()
        if re.fullmatch(re.sub(r"{[^}]*}", "[^/]+", each.replace("{model_id}", "{model_id}(/[^/]+)*")), request)
    ]
    return min(matching, key=lambda each: each.count("{"), default=request)


def test_answers_that_are_typed_otherwise_are_documented() -> None:
    pages = "".join((ROOT / "docs" / f"{page}.md").read_text() for page in ("responses", "knowledge"))

    for name in TYPED_OTHERWISE:
        method = name.removeprefix("beta.").partition(",")[0]
        assert f"`{method}`" in pages
