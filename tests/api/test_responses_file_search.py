"""The hosted search of vector stores, with its citations."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from tests.api.app_fixture import AppFixture, Served
from tests.api.fakes import FakeKnowledge
from tests.api.responses_client import (
    RESPONSES,
    WEATHER,
    assert_refused,
    follow,
    get,
    item_of,
    kinds,
    openai_client,
    post,
    respond,
    text_of,
    types_of,
    user,
)

from stint.domain.filters import ComparisonFilter
from stint.domain.retrieval import FoundChunk, RRFRanker, WeightedRanker

FACTS, NEWS = f"vs_{'1' * 32}", f"vs_{'2' * 32}"
ANDES, PERU = f"file-{'a' * 32}", f"file-{'b' * 32}"
CHUNKS = [
    FoundChunk(FACTS, ANDES, 0.9, "Llamas live in the Andes.", "andes.txt", {"kind": "animal", "year": 2020}),
    FoundChunk(FACTS, PERU, 0.5, "The Andes cross\nPeru.", "peru\n.md", {"kind": "place"}),
    FoundChunk(NEWS, "notes of today", 0.4, "Nothing happened in the Andes.", "", {}),
]
TOOL = {"type": "file_search", "vector_store_ids": [FACTS]}
SEARCH = 'call: file_search {"query": "andes."}'
BOTH = 'call: file_search {"query": "andes. peru."}'
RESULTS = "file_search_call.results"


@pytest.fixture(autouse=True)
def knowledge(app_fixture: AppFixture) -> Iterator[FakeKnowledge]:
    app_fixture.knowledge.chunks = CHUNKS
    app_fixture.knowledge.requests.clear()
    yield app_fixture.knowledge
    app_fixture.knowledge.chunks = ()


def test_a_search_runs_here_and_the_model_reads_what_it_found(http: httpx.Client) -> None:
    response = respond(http, SEARCH, tools=[TOOL])

    assert types_of(response) == ["file_search_call", "message"]
    call = item_of(response, "file_search_call")
    assert call["id"].startswith("fs_")
    assert call | {"id": ""} == {
        "type": "file_search_call",
        "id": "",
        "status": "completed",
        "queries": ["andes."],
        "results": None,
    }
    assert "Llamas live in the Andes." in text_of(response)
    assert get(http, response["id"]) == response
    assert response["tools"] == [{**TOOL, "max_num_results": 10}]


def test_the_results_are_returned_on_request(http: httpx.Client) -> None:
    response = respond(http, BOTH, tools=[TOOL], include=[RESULTS])
    plain = respond(http, BOTH, tools=[TOOL])

    results = item_of(response, "file_search_call")["results"]
    assert results == [
        {
            "file_id": ANDES,
            "filename": "andes.txt",
            "score": 0.9,
            "attributes": {"kind": "animal", "year": 2020},
            "text": "Llamas live in the Andes.",
        },
        {
            "file_id": PERU,
            "filename": "peru\n.md",
            "score": 0.5,
            "attributes": {"kind": "place"},
            "text": "The Andes cross\nPeru.",
        },
    ]
    assert item_of(get(http, plain["id"], f"?include={RESULTS}"), "file_search_call")["results"] == results


def test_what_the_answer_cites_becomes_annotations_at_their_places(http: httpx.Client) -> None:
    response = respond(http, SEARCH, tools=[TOOL])

    [part] = item_of(response, "message")["content"]
    [annotation] = part["annotations"]
    assert "<|" not in part["text"]
    assert annotation == {
        "type": "file_citation",
        "index": part["text"].index(", cite as") + len(", cite as"),
        "file_id": ANDES,
        "filename": "andes.txt",
    }


def test_an_answer_that_cites_nothing_has_no_annotations(http: httpx.Client) -> None:
    response = respond(http, "Hello", tools=[TOOL])

    assert item_of(response, "message")["content"][0]["annotations"] == []


def test_a_stream_has_the_events_of_the_search_and_of_its_citations(http: httpx.Client) -> None:
    events = follow(http, SEARCH, tools=[TOOL])

    assert kinds(events)[2:9] == [
        "output_item.added",
        "file_search_call.in_progress",
        "file_search_call.searching",
        "file_search_call.completed",
        "output_item.done",
        "output_item.added",
        "content_part.added",
    ]
    done = next(event for event in events if event["type"] == "response.output_text.done")
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    [added] = [event for event in events if event["type"] == "response.output_text.annotation.added"]
    [part] = item_of(events[-1]["response"], "message")["content"]
    assert "".join(deltas) == done["text"] == part["text"]
    assert added["sequence_number"] < done["sequence_number"]
    assert (added["annotation_index"], added["annotation"]) == (0, part["annotations"][0])
    assert added["item_id"] == item_of(events[-1]["response"], "message")["id"]
    assert get(http, events[-1]["response"]["id"]) == events[-1]["response"]


def test_a_background_response_is_the_same_when_it_is_replayed(http: httpx.Client, app_fixture: AppFixture) -> None:
    queued = respond(http, SEARCH, tools=[TOOL], background=True)
    app_fixture.work_off()

    response = get(http, queued["id"])
    replayed = http.get(f"{RESPONSES}/{queued['id']}?stream=true").text

    assert types_of(response) == ["file_search_call", "message"]
    assert item_of(response, "message")["content"][0]["annotations"]
    assert replayed.count("response.output_text.annotation.added") == 2 * 1
    assert replayed.index("annotation.added") < replayed.index("output_text.done")


def test_settings_become_a_search(http: httpx.Client, knowledge: FakeKnowledge) -> None:
    kind = {"type": "eq", "key": "kind", "value": "animal"}
    weights = {"embedding_weight": 3, "text_weight": 1}
    ranking = {"ranker": "auto", "score_threshold": 0.2, "hybrid_search": weights}
    tool = TOOL | {"filters": kind, "max_num_results": 1, "ranking_options": ranking}

    response = respond(http, BOTH, tools=[tool], include=[RESULTS])
    respond(http, SEARCH, tools=[TOOL])

    assert [each["file_id"] for each in item_of(response, "file_search_call")["results"]] == [ANDES]
    assert response["tools"] == [tool]
    asked, plain = knowledge.requests
    assert asked.filter == ComparisonFilter(type="eq", key="kind", value="animal")
    assert (asked.max_results, asked.score_threshold, asked.ranker) == (1, 0.2, WeightedRanker(alpha=0.75))
    assert (plain.max_results, plain.score_threshold, plain.ranker) == (10, 0, RRFRanker())
    assert (plain.filter, plain.mode, list(plain.queries)) == (None, "hybrid", ["andes."])


def test_several_stores_are_searched_in_one_call(http: httpx.Client, knowledge: FakeKnowledge) -> None:
    response = respond(http, SEARCH, tools=[TOOL | {"vector_store_ids": [FACTS, NEWS, FACTS]}], include=[RESULTS])

    assert list(knowledge.requests[0].store_ids) == [FACTS, NEWS]
    assert [each["file_id"] for each in item_of(response, "file_search_call")["results"]] == [ANDES, "notes of today"]


def test_parallel_calls_have_an_item_each_in_the_models_order(http: httpx.Client) -> None:
    response = respond(http, f'{SEARCH}\ncall: file_search {{"queries": ["peru.", "cross"]}}', tools=[TOOL])

    calls = [item["queries"] for item in response["output"] if item["type"] == "file_search_call"]
    assert calls == [["andes."], ["peru.", "cross"]]


def test_a_call_by_llama_stacks_name_searches_too(http: httpx.Client) -> None:
    response = respond(http, 'call: knowledge_search {"query": "andes."}', tools=[TOOL])

    assert types_of(response) == ["file_search_call", "message"]
    assert "Llamas live" in text_of(response)


def test_nothing_found_is_a_completed_search(http: httpx.Client) -> None:
    response = respond(http, 'call: file_search {"query": "boats"}', tools=[TOOL], include=[RESULTS])

    call = item_of(response, "file_search_call")
    assert (call["status"], call["results"]) == ("completed", [])
    assert "found 0 chunks" in text_of(response)


@pytest.mark.parametrize("arguments", ['{"query": "outage"}', '{"query": 7}', "{}", '{"queries": []}'])
def test_a_search_that_fails_is_an_item_and_a_message_for_the_model(http: httpx.Client, arguments: str) -> None:
    events = follow(http, f"call: file_search {arguments}", tools=[TOOL], include=[RESULTS])

    response = events[-1]["response"]
    assert item_of(response, "file_search_call")["status"] == "failed"
    assert item_of(response, "file_search_call")["results"] == []
    assert response["status"] == "completed"
    assert "file_search_call.completed" not in kinds(events)
    assert "file_search answered: " in text_of(response)


@pytest.mark.parametrize("background", [False, True])
def test_an_unknown_store_is_refused_before_the_response_starts(http: httpx.Client, background: bool) -> None:
    unknown = f"vs_{'9' * 32}"

    answer = post(http, SEARCH, tools=[WEATHER, TOOL | {"vector_store_ids": [FACTS, unknown]}], background=background)

    error = assert_refused(answer, 404, "vector_store_not_found")
    assert unknown in error["message"]
    assert error["param"] == "tools[1].vector_store_ids"


def test_the_answer_is_json_if_the_format_is(http: httpx.Client, app_fixture: AppFixture) -> None:
    schema = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
    form = {"format": {"type": "json_schema", "name": "place", "schema": schema, "strict": True}}

    response = respond(http, SEARCH, tools=[TOOL], text=form, model="recorded/m")

    [part] = item_of(response, "message")["content"]
    assert json.loads(part["text"]).keys() == {"place"}
    assert part["annotations"] == []
    assert "cite" not in str(app_fixture.last_request.messages[-1])


def test_a_search_goes_back_as_an_item(http: httpx.Client, app_fixture: AppFixture) -> None:
    done = respond(http, SEARCH, tools=[TOOL], include=[RESULTS])
    again: list[Any] = [user("go"), *done["output"], user("and?")]

    respond(http, again, tools=[TOOL], store=False, model="recorded/m")
    respond(http, "and?", previous_response_id=done["id"], model="recorded/m")

    shapes = [[type(message).__name__ for message in request.messages] for request in app_fixture.recorder.requests]
    assert shapes == [["UserInput", "AssistantAnswer", "ToolResult", "AssistantAnswer", "UserInput"]] * 2
    assert all("Llamas live" in str(request.messages[2]) for request in app_fixture.recorder.requests)


def test_a_conversation_keeps_the_search_and_its_results(http: httpx.Client, app_fixture: AppFixture) -> None:
    conversation = http.post("/v1/conversations", json={}).json()["id"]
    respond(http, SEARCH, tools=[TOOL], conversation=conversation)

    items = http.get(f"/v1/conversations/{conversation}/items?order=asc").json()["data"]
    whole = http.get(f"/v1/conversations/{conversation}/items?order=asc&include={RESULTS}").json()["data"]
    respond(http, "and?", conversation=conversation, model="recorded/m")

    assert [item["type"] for item in items] == ["message", "file_search_call", "message"]
    assert items[1]["results"] is None
    assert whole[1]["results"][0]["file_id"] == ANDES
    assert items[2]["content"][0]["annotations"][0]["file_id"] == ANDES
    assert "Llamas live" in str(app_fixture.last_request.messages[2])


def test_the_model_may_have_to_search(http: httpx.Client, knowledge: FakeKnowledge) -> None:
    chosen = respond(http, "andes.", tools=[WEATHER, TOOL], tool_choice={"type": "file_search"})
    only = {"type": "allowed_tools", "tools": [{"type": "function", "name": "get_weather"}]}
    forbidden = respond(http, SEARCH, tools=[WEATHER, TOOL], tool_choice=only)

    assert types_of(chosen) == ["file_search_call", "message"]
    assert types_of(forbidden) == ["message"]
    assert len(knowledge.requests) == 1


def test_a_search_goes_round_with_a_function_in_one_answer(http: httpx.Client) -> None:
    response = respond(http, f"call: get_weather {{}}\n{SEARCH}", tools=[WEATHER, TOOL])

    assert types_of(response) == ["function_call", "file_search_call"]
    assert get(http, response["id"]) == response


def test_two_file_searches_are_refused(http: httpx.Client) -> None:
    error = assert_refused(post(http, SEARCH, tools=[TOOL, TOOL]), 400, "duplicate_tool")

    assert "file_search" in error["message"]


@pytest.mark.parametrize("base", ["/v1", "/v1/openai/v1"])
def test_openais_client_reads_searches_and_citations(server: Served, base: str) -> None:
    with openai_client(server, base) as client:
        response = client.responses.create(
            model="scripted/demo",
            input=SEARCH,
            tools=[{"type": "file_search", "vector_store_ids": [FACTS]}],
            include=["file_search_call.results"],
        )
        with client.responses.stream(
            model="scripted/demo", input=SEARCH, tools=[{"type": "file_search", "vector_store_ids": [FACTS]}]
        ) as stream:
            types = [event.type for event in stream]

    call, message = response.output
    assert call.type == "file_search_call"
    assert message.type == "message"
    assert call.results is not None
    assert [result.file_id for result in call.results] == [ANDES]
    assert message.content[0].type == "output_text"
    [annotation] = message.content[0].annotations
    assert annotation.type == "file_citation"
    assert (annotation.file_id, annotation.filename) == (ANDES, "andes.txt")
    assert types.index("response.output_text.annotation.added") < types.index("response.output_text.done")
