"""Client 0.0.40: its own version, agents with turns and tools, and the banks of /memory/create."""

import subprocess
from collections.abc import Iterator

import pytest
from tests.api.app_fixture import AppFixture, Served
from tests.api.ingesting import ingesting
from tests.october.client import PYTHON_0_0_40, OctoberClient, forms
from tests.october.test_october_memory_tool import memory
from tests.october.test_october_recordings import INFERENCE, RETRIEVAL
from tests.october.test_october_turns import WEATHER

from stint.services.knowledge import tasks

PARIS = {
    "document_id": "paris",
    "content": "The capital of France is Paris.",
    "mime_type": "text/plain",
    "metadata": {},
}
CONFIG = {"type": "vector", "embedding_model": "all-MiniLM-L6-v2", "chunk_size_in_tokens": 64}


@pytest.fixture(scope="module")
def client(shared_server: Served) -> Iterator[OctoberClient]:
    if not PYTHON_0_0_40.exists():
        pytest.skip("client 0.0.40 is not installed: make test-october")
    with OctoberClient(shared_server.url, PYTHON_0_0_40) as client:
        yield client


@pytest.fixture
def older(
    client: OctoberClient, app_fixture: AppFixture, server: Served, monkeypatch: pytest.MonkeyPatch
) -> Iterator[OctoberClient]:
    """Yield the client for a tenant of its own, while a worker ingests."""
    monkeypatch.setattr(tasks, "find_principal", lambda: None)
    with ingesting(app_fixture):
        yield client


def test_its_environment_has_this_version() -> None:
    if not PYTHON_0_0_40.exists():
        pytest.skip("client 0.0.40 is not installed: make test-october")
    program = "from importlib.metadata import version; print(version('llama-stack-client'))"

    found = subprocess.run([str(PYTHON_0_0_40), "-c", program], capture_output=True, text=True, check=True)

    assert found.stdout == "0.0.40\n"


def test_turns_call_functions_and_can_be_read_again(older: OctoberClient) -> None:
    session = agent_id, session_id = older.open_session(tools=[WEATHER])

    called = older.say(session, "get_weather in Ulm")[-1]["turn"]
    response = {"role": "ipython", "call_id": "", "tool_name": "get_weather", "content": "sunny"}
    payloads = older.send(session, response)
    read = older.call("agents.session.retrieve", strict=True, agent_id=agent_id, session_id=session_id)
    turn = older.call("agents.turn.retrieve", strict=True, agent_id=agent_id, turn_id=called["turn_id"])

    assert [each["tool_name"] for each in called["output_message"]["tool_calls"]] == ["get_weather"]
    assert forms(payloads) == ["turn_start", *INFERENCE, "turn_complete"]
    assert "sunny" in payloads[-1]["turn"]["output_message"]["content"]
    assert (turn, read["turns"]) == (called, [called, payloads[-1]["turn"]])


def test_a_created_bank_is_filled_queried_and_used_by_an_agent(older: OctoberClient) -> None:
    created = older.call("memory.create", strict=True, name="facts", config=CONFIG)
    bank_id = created["bank_id"]

    assert older.call("memory.retrieve", strict=True, bank_id=bank_id) == created
    assert older.call("memory.list") == [created]
    assert older.call("memory.insert", strict=True, bank_id=bank_id, documents=[PARIS]) is None
    found = older.call("memory.query", strict=True, bank_id=bank_id, query=["capital", "France"])
    assert found["chunks"][0]["document_id"] == "paris"
    session = older.open_session(tools=[memory({"type": "vector", "bank_id": bank_id})])
    payloads = older.say(session, "What is the capital of France?")
    assert forms(payloads) == ["turn_start", *RETRIEVAL, *INFERENCE, "turn_complete"]
    [retrieval, _] = payloads[-1]["turn"]["steps"]
    assert retrieval["memory_bank_ids"] == [bank_id]
    assert "id:paris; content:The capital of France is Paris." in "".join(retrieval["inserted_context"])
    assert older.call("memory.drop", bank_id=bank_id) == bank_id
    assert older.call("memory.list") == []
