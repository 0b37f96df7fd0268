"""The memory tool and attachments, with the real client of October 2024."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture
from tests.api.ingesting import ingesting
from tests.october.client import OctoberClient, Refused, forms

from stint.domain.content import text_of
from stint.domain.inference import UserInput
from stint.services.knowledge import tasks

MODEL = "hashed/words-384"
LLAMAS = {"document_id": "llamas", "content": "Llamas live in Peru.", "metadata": {}}
PUMAS = {"document_id": "pumas", "content": "Pumas eat guanacos.", "metadata": {}}
BEGIN = "Here are the retrieved documents for relevant context:\n=== START-RETRIEVED-CONTEXT ===\n"
END = "\n=== END-RETRIEVED-CONTEXT ===\n"


@pytest.fixture(autouse=True)
def worker(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ingest documents. The tenant of the services is not that of the caller, who is anonymous."""
    monkeypatch.setattr(tasks, "find_principal", lambda: None)
    with ingesting(app_fixture):
        yield


def memory(*banks: dict[str, Any], **more: Any) -> dict[str, Any]:
    generator = {"type": "default", "sep": " "}
    return {
        "type": "memory",
        "memory_bank_configs": list(banks),
        "query_generator_config": generator,
        "max_tokens_in_context": 4096,
        "max_chunks": 10,
        **more,
    }


def fill_banks(october: OctoberClient) -> None:
    """Register a bank of each kind with a document or two."""
    for kind, documents in (("vector", [LLAMAS, PUMAS]), ("keyword", [PUMAS]), ("keyvalue", [LLAMAS, PUMAS])):
        bank: dict[str, Any] = {"type": kind, "identifier": kind, "provider_id": "p", "embedding_model": MODEL}
        october.call("memory_banks.register", memory_bank=bank)
        october.call("memory.insert", bank_id=kind, documents=documents)


def retrieval(payloads: list[dict[str, Any]]) -> dict[str, Any]:
    [step] = [each for each in payloads[-1]["turn"]["steps"] if each["step_type"] == "memory_retrieval"]
    return dict(step)


def said(app_fixture: AppFixture) -> str:
    """Return the user input of the last request to the model."""
    messages = app_fixture.last_request.messages
    return "\n".join(text_of(each.content) for each in messages if isinstance(each, UserInput))


def test_context_is_retrieved_before_the_model_is_called(october: OctoberClient, app_fixture: AppFixture) -> None:
    fill_banks(october)
    session = october.open_session(model="recorded/m", tools=[memory({"type": "vector", "bank_id": "vector"})])

    payloads = october.say(session, "Where do llamas live?")

    assert forms(payloads)[:4] == [
        "turn_start",
        "step_start memory_retrieval",
        "step_complete memory_retrieval",
        "step_start inference",
    ]
    step = retrieval(payloads)
    assert step["memory_bank_ids"] == ["vector"]
    assert [step["inserted_context"][0], step["inserted_context"][-1]] == [BEGIN, END]
    assert step["inserted_context"][1] == "id:llamas; content:Llamas live in Peru."
    assert "Llamas live in Peru." in said(app_fixture)
    assert app_fixture.last_request.tools == ()


def test_the_chunks_of_several_banks_are_merged_by_their_rank(october: OctoberClient) -> None:
    fill_banks(october)
    banks: list[dict[str, Any]] = [
        {"type": "keyvalue", "bank_id": "keyvalue", "keys": ["llamas", "unknown"]},
        {"type": "keyword", "bank_id": "keyword"},
    ]

    both = retrieval(october.say(october.open_session(tools=[memory(*banks)]), "What do pumas eat?"))
    one = retrieval(october.say(october.open_session(tools=[memory(*banks, max_chunks=1)]), "What do pumas eat?"))
    none = retrieval(october.say(october.open_session(tools=[memory(*banks, max_tokens_in_context=2)]), "Pumas?"))

    assert both["memory_bank_ids"] == ["keyvalue", "keyword"]
    assert both["inserted_context"][1:-1] == [
        "id:llamas; content:Llamas live in Peru.",
        "id:pumas; content:Pumas eat guanacos.",
    ]
    assert one["inserted_context"][1:-1] == ["id:llamas; content:Llamas live in Peru."]
    assert none["inserted_context"] == ""


TEMPLATE = """\
say:{% for message in messages %}{% if message.role == 'user' %} {{ message.content -}}
{% endif %}{% endfor %} guanacos"""


def test_a_model_writes_the_query(october: OctoberClient) -> None:
    fill_banks(october)
    generator = {"type": "llm", "model": "scripted/demo", "template": TEMPLATE}
    tool = memory({"type": "keyword", "bank_id": "keyword"}, query_generator_config=generator)

    step = retrieval(october.say(october.open_session(tools=[tool]), "What is eaten?"))

    assert step["inserted_context"][1] == "id:pumas; content:Pumas eat guanacos."


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"query_generator_config": {"type": "custom"}}, 400),
        ({"query_generator_config": {"type": "llm", "model": "m", "template": "{% include 'x' %}"}}, 400),
        ({"memory_bank_configs": [{"type": "graph", "bank_id": "g", "entities": ["x"] * 21}]}, 400),
    ],
)
def test_what_cannot_be_retrieved_with_is_refused_at_creation(
    october: OctoberClient, change: dict[str, Any], status: int
) -> None:
    with pytest.raises(Refused) as refused:
        october.create_agent(tools=[memory() | change])

    assert refused.value.status == status
    assert refused.value.message.startswith("agent_config.tools[0].")


def test_without_a_bank_the_step_is_empty(october: OctoberClient) -> None:
    step = retrieval(october.say(october.open_session(tools=[memory()]), "Hello"))

    assert (step["memory_bank_ids"], step["inserted_context"]) == ([], "")


def test_attachments_go_into_the_bank_of_the_session_and_are_found_in_later_turns(
    http: httpx.Client, october: OctoberClient, app_fixture: AppFixture
) -> None:
    session = agent_id, session_id = october.open_session(model="recorded/m", tools=[memory()])
    attachments = [
        {"content": "Llamas live in Peru.", "mime_type": "text/plain"},
        {"content": "data:text/plain;base64,UHVtYXMgZWF0IGd1YW5hY29zLg==", "mime_type": "text/plain"},
    ]

    first = october.say(session, "Where do llamas live?", attachments=attachments)
    shown = said(app_fixture)
    later = october.say(session, "What do pumas eat?")
    read = october.call("agents.session.retrieve", strict=True, agent_id=agent_id, session_id=session_id)
    october.call("agents.session.delete", agent_id=agent_id, session_id=session_id)

    bank = read["memory_bank"]
    assert shown.count("Llamas live in Peru.") == 1
    assert "Llamas live in Peru." in retrieval(first)["inserted_context"][1]
    assert retrieval(later)["memory_bank_ids"] == [bank["identifier"]]
    assert "Pumas eat guanacos." in retrieval(later)["inserted_context"][1]
    assert (bank["type"], bank["chunk_size_in_tokens"]) == ("vector", 512)
    assert bank["embedding_model"] == app_fixture.settings.embedding_model
    assert http.get(f"/v1/vector_stores/{bank['identifier']}").status_code == 404


def test_without_the_memory_tool_the_model_sees_attachments(october: OctoberClient, app_fixture: AppFixture) -> None:
    session = october.open_session(model="recorded/m")

    october.say(session, "Where?", attachments=[{"content": ["Llamas", "live in Peru."], "mime_type": "text/plain"}])

    assert "live in Peru." in said(app_fixture)


def test_the_model_cannot_search_in_other_banks_than_the_agents(
    http: httpx.Client, october: OctoberClient, app_fixture: AppFixture
) -> None:
    fill_banks(october)
    group = {"name": "builtin::rag", "args": {"vector_db_ids": ["keyword"]}}
    config = {"model": "scripted/demo", "instructions": "", "toolgroups": [group]}
    agent_id = http.post("/v1/agents", json={"agent_config": config}).json()["agent_id"]
    session_id = october.call("agents.session.create", agent_id=agent_id, session_name="s")["session_id"]
    call = 'knowledge_search {"query": "llamas", "memory_banks": [{"type": "keyvalue", "bank_id": "vector"}]}'

    body = {"agent_id": agent_id, "session_id": session_id, "messages": [{"role": "user", "content": call}]}
    turn = http.post("/agents/turn/create", json=body).json()["event"]["payload"]["turn"]

    [step] = [each for each in turn["steps"] if each["step_type"] == "tool_execution"]
    assert "memory_banks" in step["tool_calls"][0]["arguments"]
    assert "Peru" not in str(step["tool_responses"])
