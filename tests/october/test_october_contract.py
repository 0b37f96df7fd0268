"""Each of the 57 methods of the client of October 2024: 35 work, and the APIs of the other 22 are refused."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.api.app_fixture import AppFixture, Served
from tests.api.ingesting import ingesting
from tests.october.client import CONFIG, OctoberClient, Refused

from stint.services.knowledge import tasks

MODEL = "scripted/demo"
MESSAGES = [{"role": "user", "content": "Hello"}]
DOCUMENTS = [{"document_id": "d", "content": "Llamas live in Peru.", "metadata": {}}]
BANK = {
    "type": "vector",
    "identifier": "bank",
    "provider_id": "faiss",
    "embedding_model": "hashed/words-384",
    "chunk_size_in_tokens": 64,
    "overlap_size_in_tokens": 16,
}
SHIELD = {"identifier": "words", "type": "deny_list", "params": {"phrases": ["bomb"]}, "provider_id": "deny-list"}
EVENT = {
    "type": "unstructured_log",
    "message": "m",
    "severity": "info",
    "span_id": "1",
    "trace_id": "2",
    "timestamp": "2024-10-10T00:00:00Z",
}
JOB = {"job_uuid": "j"}
TUNING = {
    **JOB,
    "algorithm": "lora",
    "algorithm_config": {},
    "dataset": {},
    "hyperparam_search_config": {},
    "logger_config": {},
    "optimizer_config": {},
    "training_config": {},
    "validation_dataset": {},
}
OTHERS: list[tuple[str, dict[str, Any]]] = [
    ("batch_inferences.chat_completion", {"messages_batch": [], "model": MODEL}),
    ("batch_inferences.completion", {"content_batch": [], "model": MODEL}),
    ("datasets.create", {"dataset": {}, "uuid": "u"}),
    ("datasets.retrieve", {"dataset_uuid": "u"}),
    ("datasets.delete", {"dataset_uuid": "u"}),
    ("evaluate.question_answering", {"metrics": []}),
    ("evaluate.summarization", {"metrics": []}),
    ("evaluations.text_generation", {"metrics": []}),
    ("evaluate.jobs.list", {}),
    ("evaluate.jobs.status.list", JOB),
    ("evaluate.jobs.logs.list", JOB),
    ("evaluate.jobs.artifacts.list", JOB),
    ("evaluate.jobs.cancel", JOB),
    ("post_training.supervised_fine_tune", {**TUNING, "model": MODEL}),
    ("post_training.preference_optimize", {**TUNING, "finetuned_model": "m"}),
    ("post_training.job.list", {}),
    ("post_training.job.status", JOB),
    ("post_training.job.logs", JOB),
    ("post_training.job.artifacts", JOB),
    ("post_training.job.cancel", JOB),
    ("reward_scoring.score", {"dialog_generations": [], "model": MODEL}),
    ("synthetic_data_generation.generate", {"dialogs": [], "filtering_function": "none"}),
]
BEGINNINGS = {"evaluations": "evaluate", "batch_inferences": "batch_inference"}
LOOSE = {
    "memory.list",
    "memory_banks.list",
    "models.list",
    "shields.list",
    "providers.list",
    "routes.list",
    "memory.drop",
}
"""Methods whose types the client cannot validate: it expects one line of a list, and JSON where it asks for a text."""


@pytest.fixture
def worker(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ingest documents. The tenant of the services is not that of the caller, who is anonymous."""
    monkeypatch.setattr(tasks, "find_principal", lambda: None)
    with ingesting(app_fixture):
        yield


class Walk:
    """Calls methods of the client, and remembers which."""

    def __init__(self, client: OctoberClient) -> None:
        self.client = client
        self.called: list[str] = []

    def call(self, method: str, **arguments: Any) -> Any:
        self.called.append(method)
        return self.client.call(method, strict=method not in LOOSE, **arguments)


@pytest.mark.usefixtures("worker")
def test_each_method_of_the_agents_api_and_its_dependencies_works(october: OctoberClient) -> None:
    walk = Walk(october)
    use_agents(walk)
    use_banks(walk)
    use_resources(walk)
    with pytest.raises(Refused) as trace:
        walk.call("telemetry.get_trace", trace_id="2")

    assert (trace.value.status, trace.value.headers["x-should-retry"]) == (501, "false")
    assert "X-Ray" in trace.value.message
    assert len(walk.called) == len(set(walk.called)) == 35
    assert sorted([*walk.called, *(name for name, _ in OTHERS)]) == october.list_methods()


def use_agents(walk: Walk) -> None:
    agent = walk.call("agents.create", agent_config=CONFIG)
    session = agent | walk.call("agents.session.create", session_name="s", **agent)
    chunks = walk.call("agents.turn.create", messages=MESSAGES, stream=True, **session)
    turn = chunks[-1]["event"]["payload"]["turn"]
    name = agent | {"turn_id": turn["turn_id"]}
    assert walk.call("agents.turn.retrieve", **name) == turn
    [step] = turn["steps"]
    assert walk.call("agents.steps.retrieve", step_id=step["step_id"], **name) == {"step": step}
    assert walk.call("agents.session.retrieve", turn_ids=[turn["turn_id"]], **session)["turns"] == [turn]
    assert walk.call("agents.session.delete", **session) is None
    assert walk.call("agents.delete", **agent) is None


def use_banks(walk: Walk) -> None:
    assert walk.call("memory_banks.register", memory_bank=BANK) is None
    assert walk.call("memory_banks.retrieve", identifier="bank") == BANK
    assert len(walk.call("memory_banks.list")) == 1
    config = {name: value for name, value in BANK.items() if name not in ("identifier", "provider_id")}
    created = walk.call("memory.create", name="later", config=config)
    assert walk.call("memory.retrieve", bank_id=created["bank_id"]) == created
    assert created in walk.call("memory.list")
    assert walk.call("memory.insert", bank_id="bank", documents=DOCUMENTS, ttl_seconds=3600) is None
    assert walk.call("memory.query", bank_id="bank", query="llamas")["chunks"][0]["document_id"] == "d"
    assert walk.call("memory.update", bank_id="bank", documents=DOCUMENTS) is None
    found = walk.call("memory.documents.retrieve", bank_id="bank", document_ids=["d"])
    assert found["content"] == DOCUMENTS[0]["content"]
    assert walk.call("memory.documents.delete", bank_id="bank", document_ids=["d"]) is None
    assert walk.call("memory.drop", bank_id="bank") == "bank"


def use_resources(walk: Walk) -> None:
    model = {"identifier": "mine", "llama_model": MODEL, "metadata": {}, "provider_id": "scripted"}
    assert walk.call("models.register", model=model) is None
    assert walk.call("models.retrieve", identifier="mine") == model
    assert model in walk.call("models.list")
    assert walk.call("shields.register", shield=SHIELD) is None
    assert walk.call("shields.retrieve", shield_type="words") == SHIELD
    assert walk.call("shields.list") == [SHIELD]
    assert walk.call("safety.run_shield", shield_type="words", messages=MESSAGES, params={}) == {"violation": None}
    chunks = walk.call("inference.chat_completion", model=MODEL, messages=MESSAGES, stream=True)
    assert chunks[-1]["event"]["event_type"] == "complete"
    assert walk.call("inference.completion", model=MODEL, content="Hello")["completion_message"]["content"]
    [vector] = walk.call("inference.embeddings.create", model="hashed/words-384", contents=["x"])["embeddings"]
    assert len(vector) == 384
    assert walk.call("providers.list")["memory"]
    assert walk.call("routes.list")["agents"]
    assert walk.call("inspect.health") == {"status": "OK"}
    assert walk.call("telemetry.log_event", event=EVENT) is None


@pytest.mark.parametrize(("method", "arguments"), OTHERS, ids=[method for method, _ in OTHERS])
def test_each_method_of_the_other_apis_is_refused_once_by_the_name_of_its_api(
    october: OctoberClient, server: Served, method: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as refused:
        october.call(method, **arguments)

    api = method.partition(".")[0]
    assert (refused.value.status, refused.value.headers["x-should-retry"]) == (501, "false")
    assert f"The API {BEGINNINGS.get(api, api)} of October 2024 is not supported" in refused.value.message
    assert max(server.posts.values(), default=0) <= 1  # a path with a trailing slash is redirected
