"""Graph banks: documents that are found by the entities that they name, with the real client of October 2024."""

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.api.app_fixture import AppFixture, run_in_thread
from tests.api.ingesting import ingesting
from tests.october.client import OctoberClient, Refused
from tests.october.test_october_memory_tool import memory, retrieval

from stint.services.knowledge import tasks
from stint.services.knowledge.removal import Removal

GRAPH = {"type": "graph", "identifier": "people", "provider_id": "graph"}


@pytest.fixture(autouse=True)
def worker(app_fixture: AppFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ingest documents. The tenant of the services is not that of the caller, who is anonymous."""
    monkeypatch.setattr(tasks, "find_principal", lambda: None)
    with ingesting(app_fixture):
        yield


def naming(document_id: str, *entities: str) -> dict[str, Any]:
    return {"document_id": document_id, "content": f"About {document_id}.", "metadata": {"entities": list(entities)}}


@pytest.fixture
def people(october: OctoberClient) -> OctoberClient:
    """Register a graph bank: curie and nobel share an entity, nobel and dynamite another."""
    october.call("memory_banks.register", memory_bank=GRAPH)
    october.call(
        "memory.insert",
        bank_id="people",
        documents=[
            naming("curie", "Marie Curie", "Nobel Prize", "Paris"),
            naming("nobel", "Nobel Prize", "Alfred Nobel"),
            naming("dynamite", "Alfred Nobel", "Dynamite"),
            naming("louvre", "Paris"),
            naming("llamas", "Peru"),
        ],
    )
    return october


def find(october: OctoberClient, query: str = "", *entities: str, most: int = 10) -> list[str]:
    params = {"max_chunks": most} | ({"entities": list(entities)} if entities else {})
    found = october.call("memory.query", strict=True, bank_id="people", query=query, params=params)
    assert found["scores"] == sorted(found["scores"], reverse=True)
    return [chunk["document_id"] for chunk in found["chunks"]]


def links_of(app_fixture: AppFixture) -> int:
    """Return the number of records of entities and their links."""
    items = app_fixture.dynamodb.scan(TableName=app_fixture.settings.table)["Items"]
    own = [item for item in items if item["pk"]["S"].startswith(f"{app_fixture.tenant}#")]
    return sum(item["sk"]["S"].startswith("entity:") for item in own)


def test_a_query_finds_the_documents_of_its_entities_and_those_one_link_away(people: OctoberClient) -> None:
    assert people.call("memory_banks.retrieve", identifier="people")["type"] == "graph"
    assert find(people, "Who was marie CURIE?") == ["curie", "louvre", "nobel"]
    assert find(people, "", "Nobel Prize") == ["curie", "nobel", "dynamite", "louvre"]
    assert find(people, "", "Paris", "Nobel Prize", most=2) == ["curie", "louvre"]
    assert find(people, "", "Peru") == ["llamas"]
    assert find(people, "What is for lunch?") == []


def test_replaced_and_deleted_documents_no_longer_link_others(people: OctoberClient, app_fixture: AppFixture) -> None:
    people.call("memory.update", bank_id="people", documents=[naming("nobel", "Stockholm")])
    changed = [find(people, "", "Nobel Prize"), find(people, "", "Alfred Nobel"), find(people, "in Stockholm")]
    people.call("memory.documents.delete", bank_id="people", document_ids=["curie", "louvre"])

    assert changed == [["curie", "louvre"], ["dynamite"], ["nobel"]]
    assert find(people, "", "Paris", "Marie Curie") == []
    assert links_of(app_fixture) == 2 * len({"alfred nobel", "dynamite", "stockholm", "peru"})


def test_a_document_that_expires_is_not_found_by_its_entities(
    people: OctoberClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    people.call("memory.insert", bank_id="people", documents=[naming("brief", "Peru")], ttl_seconds=60)
    before = find(people, "", "Peru")
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)

    assert (before, find(people, "", "Peru")) == (["brief", "llamas"], ["llamas"])


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('["Lima", "The Andes"]', True),
        ('Here they are: ["Lima", 7, null, ["x"], "' + "y" * 500 + '"] I hope that helps.', True),
        ("[" * 5_000, False),
        ("I will not.", False),
        ("[" + "1," * 2_000 + "1]", False),
    ],
    ids=["list", "others", "deep", "none", "numbers"],
)
def test_the_banks_model_finds_the_entities_of_other_documents(
    october: OctoberClient, answer: str, *, found: bool
) -> None:
    october.call("memory_banks.register", memory_bank={**GRAPH, "model": "scripted/demo"})
    text = {"document_id": "peru", "content": f"Lima is in Peru.\nsay: {answer}", "metadata": {}}

    october.call("memory.insert", bank_id="people", documents=[text])

    assert find(october, "", "lima") == (["peru"] if found else [])


def test_what_cannot_be_linked_is_refused_and_nothing_is_inserted(october: OctoberClient) -> None:
    october.call("memory_banks.register", memory_bank=GRAPH)
    failing = {"document_id": "x", "content": "fail: before", "metadata": {}}
    plain = [{"document_id": str(place), "content": "Lima", "metadata": {}} for place in range(51)]
    requests: Sequence[tuple[int, str, dict[str, Any]]] = (
        (400, "memory.insert", {"documents": [naming("a", "Lima"), naming("b", *map(str, range(51)))]}),
        (400, "memory.insert", {"documents": [naming("a", "Lima"), naming("b", "x" * 101)]}),
        (400, "memory.insert", {"documents": plain}),
        (502, "memory.insert", {"documents": [naming("a", "Lima"), failing]}),
        (400, "memory.query", {"query": "", "params": {"entities": ["x"] * 21}}),
        (400, "memory.query", {"query": "", "params": {"entities": "Lima"}}),
        (400, "memory.query", {"query": ""}),
    )
    for status, method, arguments in requests:
        with pytest.raises(Refused) as refused:
            october.call(method, bank_id="people", **arguments)
        assert refused.value.status == status, json.dumps(arguments)[:200]
    assert find(october, "", "Lima") == []


def test_a_model_that_does_not_exist_is_refused_at_registration(october: OctoberClient) -> None:
    with pytest.raises(Refused) as refused:
        october.call("memory_banks.register", memory_bank={**GRAPH, "model": "nobody/m"})

    assert (refused.value.status, october.call("memory_banks.list")) == (400, [])


def test_a_dropped_bank_leaves_no_links(people: OctoberClient, app_fixture: AppFixture) -> None:
    people.call("memory.drop", bank_id="people")
    removal, [task] = Removal(app_fixture.store, app_fixture.get_index), app_fixture.queue.early_deletions
    done = run_in_thread(removal.delete_store(task, time.monotonic() + 30))

    assert (done, links_of(app_fixture)) == (True, 0)


def test_the_memory_tool_retrieves_by_entities_and_merges_other_banks(people: OctoberClient) -> None:
    people.call("memory_banks.register", memory_bank={**GRAPH, "type": "keyword", "identifier": "words"})
    people.call("memory.insert", bank_id="words", documents=[naming("pumas")])
    graph: dict[str, Any] = {"type": "graph", "bank_id": "people"}
    named = memory({**graph, "entities": ["Dynamite"]}, {"type": "keyword", "bank_id": "words"})
    unnamed = memory({**graph, "entities": []})

    first = retrieval(people.say(people.open_session(tools=[named]), "About pumas"))
    second = retrieval(people.say(people.open_session(tools=[unnamed]), "Who got the Nobel Prize?"))

    assert first["memory_bank_ids"] == ["people", "words"]
    assert [line.split(";")[0] for line in first["inserted_context"][1:-1]] == ["id:dynamite", "id:pumas", "id:nobel"]
    assert [line.split(";")[0] for line in second["inserted_context"][1:3]] == ["id:curie", "id:nobel"]
