"""Answers to the requests of the recordings, held against the original's: the status, the keys, the types and values.

Where ours are others on purpose, the reason is in the name of the case.
"""

import json
from collections.abc import Iterator
from string import Template
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture, Served
from tests.api.ingesting import ingesting
from tests.october.client import CONFIG
from tests.october.recorded_shapes import (
    BANK,
    CALL,
    CALLING,
    CHUNK,
    CREATED,
    ERROR,
    EVENTS,
    FIRST_CHUNK,
    FOUND,
    INVALID,
    LAST_CHUNK,
    MESSAGE,
    MODEL,
    PROVIDERS,
    ROUTES,
    SHIELD,
    STEPS,
    TURN,
    VIOLATION,
    differences,
    event_differences,
)

from stint.domain.ids import new_id
from stint.services.knowledge import tasks

MODEL_ID = "scripted/demo"
GUARD = {"identifier": "llama_guard", "type": "deny_list", "params": {"phrases": ["bomb"]}, "provider_id": "deny-list"}
CONFIGURED = {**CONFIG, "sampling_params": {"strategy": "greedy", "temperature": 1.0, "top_p": 0.9}}
DEFINITION = {**BANK, "identifier": "bank2"}
DOCUMENTS = [
    {"document_id": "doc-1", "content": "LoRA is an adapter.", "mime_type": "text/plain", "metadata": {}},
    {"document_id": "doc-2", "content": "data:text/plain;base64,UGFyaXM=", "mime_type": "text/plain", "metadata": {}},
    {"document_id": "doc-3", "content": ["part A ", "part B bananas"], "metadata": {}},
]
LATER = {"type": "vector", "embedding_model": "all-MiniLM-L6-v2", "chunk_size_in_tokens": 64}
CREATION = {"name": "m", "config": LATER | {"overlap_size_in_tokens": 16}}
NAMES = {"agent_id": "$agent", "session_id": "$session"}
TOOL = {"tool_name": "get_boiling_point", "description": "d", "parameters": {"liquid": {"param_type": "string"}}}
LOGGED = {"type": "unstructured_log", "message": "m", "severity": "info", "span_id": "1", "trace_id": "2"} | {
    "timestamp": "2024-10-10T00:00:00Z"
}
SESSION = {"session_id": str, "session_name": "s", "turns": [TURN], "started_at": str}


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def ask(text: str, **more: Any) -> dict[str, Any]:
    return {"model": MODEL_ID, "messages": user(text), **more}


def guard(text: str) -> dict[str, Any]:
    return {"shield_type": "llama_guard", "messages": user(text)}


ASKED = ask("get_boiling_point of tea", tools=[TOOL])


def turn(**more: Any) -> dict[str, Any]:
    return {**NAMES, "messages": user("x"), **more}


def agent(**more: Any) -> dict[str, Any]:
    return {"agent_config": {**CONFIGURED, **more}}


def bank(kind: str) -> dict[str, Any]:
    return {"memory_bank": {"identifier": f"b_{kind}", "type": kind, "provider_id": "faiss"}}


SAME: list[Any] = [
    ("GET /health", None, 200, {"status": "OK"}),
    ("POST /agents/create", agent(), 200, {"agent_id": str}),
    ("POST /agents/create", agent(model="nope"), 200, {"agent_id": str}),
    ("POST /agents/session/create", {"agent_id": "$agent", "session_name": "s"}, 200, {"session_id": str}),
    ("GET /memory_banks/get?identifier=bank1", None, 200, BANK),
    ("GET /memory_banks/get?identifier=nope", None, 200, None),
    ("GET /memory_banks/list", None, 200, [{**BANK, "identifier": str}]),
    ("POST /memory_banks/register", {"memory_bank": DEFINITION}, 200, None),
    ("POST /memory_banks/register", {"memory_bank": BANK}, 200, None),
    ("POST /memory/create", CREATION, 200, CREATED),
    ("POST /memory/insert", {"bank_id": "bank1", "documents": DOCUMENTS[:1]}, 200, None),
    ("POST /memory/query", {"bank_id": "bank1", "query": "bananas", "params": {"max_chunks": 2}}, 200, FOUND),
    ("POST /memory/query", {"bank_id": "bank1", "query": ["bananas", "part"]}, 200, FOUND),
    ("GET /models/list", None, 200, [MODEL]),
    (f"GET /models/get?identifier={MODEL_ID}", None, 200, MODEL),
    ("GET /models/get?identifier=nope", None, 200, None),
    ("GET /shields/list", None, 200, [SHIELD]),
    ("GET /shields/get?shield_type=llama_guard", None, 200, SHIELD),
    ("GET /shields/get?shield_type=nope", None, 200, None),
    ("POST /safety/run_shield", guard("hi"), 200, {"violation": None}),
    ("POST /safety/run_shield", guard("a bomb"), 200, {"violation": VIOLATION}),
    ("POST /inference/chat_completion", ask("hi"), 200, {"completion_message": MESSAGE, "logprobs": None}),
    ("POST /inference/chat_completion", ASKED, 200, {"completion_message": CALLING, "logprobs": None}),
    ("POST /telemetry/log_event", {"event": LOGGED}, 200, None),
    ("POST /agents/turn/create", turn(messages=[{"role": "assistant", "content": "x"}]), 400, INVALID),
    ("POST /agents/turn/create", {"agent_id": "$agent"}, 400, INVALID),
    ("POST /agents/create", {"agent_config": {"model": "m", "instructions": "i"}}, 400, INVALID),
    ("POST /agents/create", agent(tools=[{"type": "nope"}]), 400, INVALID),
    ("POST /agents/create", agent(tools=[{"type": "brave_search", "engine": "brave"}]), 400, INVALID),
    ("POST /inference/chat_completion", ask("hi", sampling_params={"strategy": "best"}), 400, INVALID),
    ("POST /inference/chat_completion", {"model": "nope", "messages": user("hi")}, 400, ERROR),
    ("POST /inference/chat_completion", {"model": "nope", "messages": user("hi"), "stream": True}, 400, ERROR),
    ("POST /safety/run_shield", {"shield_type": "nope", "messages": user("hi")}, 400, ERROR),
    ("POST /models/register", {"model": {"identifier": "x", "llama_model": "m", "provider_id": "ollama"}}, 400, ERROR),
    ("GET /nope", None, 404, ERROR),
    ("GET /agents/create", None, 405, ERROR),
    ("GET /telemetry/get_trace?trace_id=2", None, 501, ERROR),
]
BETTER: dict[str, Any] = {
    "a session is read with its ids in the query, although the original wanted them in the body": (
        ("POST /agents/session/get?agent_id=$agent&session_id=$session", {}, 200, SESSION)
    ),
    "a session is read with its ids in the body, which was not implemented": (
        ("POST /agents/session/get", NAMES, 200, SESSION)
    ),
    "a turn is read, which was not allowed": ("GET /agents/turn/get?agent_id=$agent&turn_id=$turn", None, 200, TURN),
    "a step is read, which was not allowed": (
        "GET /agents/step/get?agent_id=$agent&turn_id=$turn&step_id=$step",
        None,
        200,
        {"step": STEPS["inference"]},
    ),
    "a turn without a stream works, which was not implemented": (
        "POST /agents/turn/create",
        turn(),
        200,
        {"event": {"payload": {"event_type": "turn_complete", "turn": TURN}}},
    ),
    "a session is deleted, which was not implemented": ("POST /agents/session/delete", NAMES, 200, None),
    "an agent is deleted, which was not implemented": ("POST /agents/delete", {"agent_id": "$agent"}, 200, None),
    "an unknown agent is a 404 before the stream instead of an event in it": (
        ("POST /agents/turn/create", turn(agent_id="nope", stream=True), 404, ERROR)
    ),
    "an unknown session is a 404 before the stream instead of an event in it": (
        ("POST /agents/turn/create", turn(session_id="nope", stream=True), 404, ERROR)
    ),
    "a session of an unknown agent is a 404 instead of a 400": (
        ("POST /agents/session/create", {"agent_id": "nope", "session_name": "s"}, 404, ERROR)
    ),
    "a query of an unknown bank is a 404 instead of a 400": (
        ("POST /memory/query", {"bank_id": "nope", "query": "x"}, 404, ERROR)
    ),
    "the engine bing is refused at creation, because Microsoft retired its API": (
        "POST /agents/create",
        agent(tools=[{"type": "brave_search", "engine": "bing", "api_key": "k"}]),
        400,
        ERROR,
    ),
    "a keyvalue bank works instead of failing": ("POST /memory_banks/register", bank("keyvalue"), 200, None),
    "a keyword bank works instead of failing": ("POST /memory_banks/register", bank("keyword"), 200, None),
    "a graph bank works instead of failing": ("POST /memory_banks/register", bank("graph"), 200, None),
    "a bank without a provider has the default one, because apps omit it": (
        ("POST /memory_banks/register", {"memory_bank": {**LATER, "identifier": "b10"}}, 200, None)
    ),
    "a document with several texts is joined instead of failing": (
        ("POST /memory/insert", {"bank_id": "bank1", "documents": DOCUMENTS}, 200, None)
    ),
    "a bank is updated, which was not possible": (
        ("POST /memory/update", {"bank_id": "bank1", "documents": DOCUMENTS[:1]}, 200, None)
    ),
    "the list of created banks has them instead of null": ("GET /memory/list", None, 200, [dict]),
    "a completion works, which was not implemented": (
        "POST /inference/completion",
        {"model": MODEL_ID, "content": "Once"},
        200,
        {"completion_message": MESSAGE, "logprobs": None},
    ),
    "embeddings of a model of language are a 400, because embeddings are implemented": (
        ("POST /inference/embeddings", {"model": MODEL_ID, "contents": ["a"]}, 400, ERROR)
    ),
    "an API that is not served says so with 501 instead of 404": ("GET /post_training/jobs", None, 501, ERROR),
}


@pytest.fixture(scope="module")
def recorded(shared_app_fixture: AppFixture, shared_server: Served) -> Iterator[httpx.Client]:
    """Yield a plain HTTP client of a tenant that this module has for itself. A worker ingests."""
    tenant = f"t{new_id()[-12:]}"
    with pytest.MonkeyPatch.context() as patch, httpx.Client(base_url=shared_server.url, trust_env=False) as client:
        patch.setattr(shared_app_fixture, "tenant", tenant)
        patch.setattr(tasks, "find_principal", lambda: None)
        with ingesting(shared_app_fixture):
            yield client


@pytest.fixture(scope="module")
def names(recorded: httpx.Client) -> dict[str, str]:
    """Create what the recorded requests name: a shield, a bank, an agent, and a session with a turn."""

    def post(path: str, body: dict[str, Any]) -> Any:
        answer = recorded.post(path, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    post("/shields/register", {"shield": GUARD})
    post("/memory_banks/register", {"memory_bank": BANK})
    post("/memory/insert", {"bank_id": "bank1", "documents": DOCUMENTS[:2]})
    made = post("/agents/create", agent())
    made |= post("/agents/session/create", made | {"session_name": "s"})
    found = post("/agents/turn/create", made | {"messages": user("Hello")})["event"]["payload"]["turn"]
    step = found["steps"][0]["step_id"]
    return {"agent": made["agent_id"], "session": made["session_id"], "turn": found["turn_id"], "step": step}


def replay(recorded: httpx.Client, names: dict[str, str], request: str, body: Any) -> httpx.Response:
    """Send a recorded request with the ids of this run."""
    method, path = Template(request).substitute(names).split()
    return recorded.request(method, path, json=json.loads(Template(json.dumps(body)).substitute(names)))


def check(answer: httpx.Response, status: int, shape: Any) -> None:
    """Check an answer. An error has a further object, `error`, as those of all APIs here."""
    assert answer.status_code == status, answer.text
    value = answer.json()
    if status >= 400:
        about = value.pop("error")
        assert list(differences({"message": str, "type": str, "code": str, "param": str}, about)) == []
    assert list(differences(shape, value)) == []


@pytest.mark.parametrize("exchange", SAME, ids=[f"{each[0]} {each[2]}" for each in SAME])
def test_an_answer_has_the_recorded_shape(recorded: httpx.Client, names: dict[str, str], exchange: Any) -> None:
    request, body, status, shape = exchange

    check(replay(recorded, names, request, body), status, shape)


@pytest.mark.parametrize("reason", BETTER)
def test_an_answer_is_better_than_the_recorded_one(recorded: httpx.Client, names: dict[str, str], reason: str) -> None:
    request, body, status, shape = BETTER[reason]

    check(replay(recorded, names, request, body), status, shape)


def test_the_lists_of_providers_and_routes_have_the_recorded_shapes(recorded: httpx.Client) -> None:
    providers, routes = recorded.get("/providers/list").json(), recorded.get("/routes/list").json()

    assert {"inference", "safety", "memory"} <= providers.keys()
    assert [each for listed in providers.values() for each in differences(PROVIDERS, listed)] == []
    apis = ("agents", "inference", "inspect", "memory", "memory_banks", "models", "safety", "shields", "telemetry")
    assert sorted(routes) == list(apis)
    assert [each for listed in routes.values() for each in differences(ROUTES, listed)] == []


def test_the_events_of_a_stream_have_the_recorded_keys_before_the_client_adds_its_own(
    recorded: httpx.Client, names: dict[str, str]
) -> None:
    function = {"type": "function_call", "function_name": TOOL["tool_name"], "description": "d"}
    tools = [{**function, "parameters": TOOL["parameters"]}]
    made = recorded.post("/agents/create", json=agent(tools=tools, input_shields=["llama_guard"])).json()
    made |= recorded.post("/agents/session/create", json=made | {"session_name": "s"}).json()
    body = {**made, "messages": user("get_boiling_point of tea"), "stream": True}
    lines = recorded.post("/agents/turn/create", json=body).text.split("\n\n")
    payloads = [
        json.loads(line.removeprefix("data: "))["event"]["payload"] for line in lines if line.startswith("data")
    ]

    assert {each["event_type"] for each in payloads} == {name.split()[0] for name in EVENTS}
    assert [each for payload in payloads for each in event_differences(payload)] == []


@pytest.mark.parametrize(("text", "tools"), [("hi", []), ("get_boiling_point of tea", [TOOL])])
def test_the_chunks_of_a_chat_completion_have_the_recorded_shapes(
    recorded: httpx.Client, text: str, tools: list[Any]
) -> None:
    answer = recorded.post("/inference/chat_completion", json=ask(text, tools=tools, stream=True))
    first, *chunks, last = [json.loads(line.removeprefix("data: ")) for line in answer.text.split("\n\n") if line]

    assert list(differences(FIRST_CHUNK, first)) == []
    assert [each for chunk in chunks for each in differences(CHUNK, chunk)] == []
    assert list(differences(LAST_CHUNK, last)) == []
    found = [chunk["event"]["delta"]["content"] for chunk in chunks if not isinstance(chunk["event"]["delta"], str)]
    calls = [content for content in found if isinstance(content, dict)]
    assert len(calls) == len(tools)
    assert [each for call in calls for each in differences(CALL, call)] == []
