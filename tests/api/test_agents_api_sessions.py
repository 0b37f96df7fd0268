"""Sessions of OpenAI's Agents API with OpenAI's client: streams, functions, steering and cancellation."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from openai import BadRequestError, OpenAI
from pydantic import BaseModel
from tests.api.agents_api_client import (
    AGENT,
    CALL,
    CANCEL,
    NONE,
    WEATHER,
    OpenStream,
    message,
    post_events,
    result_of,
    start_session,
    stream_session,
    text_of,
)
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import openai_client
from tests.servers import chat_completions as provider
from tests.servers.chat_completions import ChatCompletionsServer

from stint.domain.ids import TENANT
from stint.store import keys
from stint.store.keys import Key


@pytest.fixture
def client(server: Served) -> Iterator[OpenAI]:
    with openai_client(server) as client:
        yield client


def pause_session(client: OpenAI, app_fixture: AppFixture) -> Any:
    """Return a session whose first turn waits for the result of a function."""
    session = start_session(client, CALL, tools=[WEATHER])
    app_fixture.run_waiting()
    return client.beta.agents.sessions.retrieve(session.id)


def expire(app_fixture: AppFixture, key: Key) -> None:
    """Let a record expire, which DynamoDB has not removed yet."""
    app_fixture.dynamodb.update_item(
        TableName=app_fixture.settings.table,
        Key={name: {"S": value} for name, value in key._asdict().items()},
        UpdateExpression="SET expires_at = :past",
        ExpressionAttributeValues={":past": {"N": "1000"}},
    )


@pytest.fixture
def opened() -> Iterator[Callable[..., OpenStream]]:
    """Yield a function that opens a stream, which the end of the test closes."""
    with ExitStack() as streams:
        yield lambda *args, **options: streams.enter_context(OpenStream(*args, **options))


class City(BaseModel):
    city: str


def test_a_new_session_streams_its_first_turn(client: OpenAI) -> None:
    events = stream_session(client, "Hello")

    assert [event.type.removeprefix("agent.session.") for event in events if "delta" not in event.type] == [
        "created",
        "in_progress",
        "turn.created",
        "turn.item.added",
        "turn.in_progress",
        "turn.item.added",
        "turn.content_part.added",
        "turn.output_text.done",
        "turn.content_part.done",
        "turn.item.done",
        "turn.completed",
        "idle",
    ]
    assert len({event.event_id for event in events}) == len(events)
    assert events[-1].session.usage.total_tokens == events[-2].usage.total_tokens > 0
    assert client.beta.agents.sessions.retrieve(events[0].session.id) == events[-1].session


def test_an_open_stream_runs_the_turn_of_a_later_request(client: OpenAI, app_fixture: AppFixture) -> None:
    session = stream_session(client)[0].session

    with client.beta.agents.sessions.stream(session.id, input="Tell me more") as stream:
        result = stream.get_final_result()

    assert "Tell me more" in result.output_text
    app_fixture.run_waiting()
    assert len(client.beta.agents.sessions.turns.list(session.id).data) == 2


def test_the_worker_runs_a_turn_without_a_stream(client: OpenAI, app_fixture: AppFixture) -> None:
    session = start_session(client)
    assert session.status == "in_progress"

    app_fixture.run_waiting()

    assert client.beta.agents.sessions.retrieve(session.id).status == "idle"
    [turn] = client.beta.agents.sessions.turns.list(session.id).data
    assert turn.status == "completed"


def test_handlers_of_the_client_answer_calls_of_functions(client: OpenAI) -> None:
    cities: list[str] = []

    def get_weather(arguments: dict[str, Any]) -> str:
        cities.append(arguments["city"])
        return "sunny"

    session = stream_session(client, "Hello", tools=[WEATHER])[0].session
    with client.beta.agents.sessions.stream(
        session.id, input=CALL, tool_handlers={"get_weather": get_weather}
    ) as stream:
        result = stream.get_final_result()

    assert cities == ["Rome"]
    assert "sunny" in result.output_text
    kinds = [item.type for item in client.beta.agents.sessions.items.list(session.id, order="asc")]
    assert kinds[2:] == ["message", "function_call", "function_call_output", "message"]


def test_a_session_answers_in_the_form_of_a_type(client: OpenAI) -> None:
    stream = client.beta.agents.sessions.create(
        environment=NONE, agent=AGENT, input="Hello", stream=True, output_type=City
    )

    with stream:
        result = stream.get_final_result()

    assert isinstance(result.output_parsed, City)


def test_a_turn_whose_answer_is_cut_has_failed(client: OpenAI) -> None:
    events = stream_session(client, "cut: 3 words\nOne two three four five")

    [turn] = client.beta.agents.sessions.turns.list(events[0].session.id).data
    assert [event.type for event in events[-2:]] == ["agent.session.turn.failed", "agent.session.idle"]
    assert events[-2].turn == turn
    assert (turn.status, turn.error and turn.error.code) == ("failed", "max_output_tokens")
    assert "One" in str(client.beta.agents.sessions.items.list(events[0].session.id).data[0].to_dict())


def test_a_turn_that_the_provider_refuses_has_a_start(
    client: OpenAI, chat: ChatCompletionsServer, server: Served, opened: Callable[..., OpenStream]
) -> None:
    session = stream_session(client)[0].session
    client.beta.agents.sessions.update(session.id, agent={"model": "openai/m"})
    stream = opened(server, session.id)
    chat.script(provider.error(401, "Wrong key"))

    client.beta.agents.sessions.events.create(session.id, events=[message("Hello")])  # type: ignore[list-item]

    stream.wait_for("idle")
    assert stream.types == [
        "in_progress",
        "turn.created",
        "turn.item.added",
        "turn.in_progress",
        "turn.failed",
        "idle",
    ]
    again = opened(server, session.id, stream.ids[0])
    again.wait_for("idle")
    assert again.events == stream.events[1:]


def test_the_results_of_a_turn_that_the_provider_then_refuses_are_shown(
    client: OpenAI,
    http: httpx.Client,
    app_fixture: AppFixture,
    chat: ChatCompletionsServer,
    server: Served,
    opened: Callable[..., OpenStream],
) -> None:
    call = provider.tool_call("c0", "get_weather", "{}")
    chat.script(provider.stream(*call, finish="tool_calls"), provider.error(401, "Wrong key"))
    session = start_session(client, model="openai/m", tools=[WEATHER])
    app_fixture.run_waiting()
    [action] = client.beta.agents.sessions.retrieve(session.id).required_actions
    stream = opened(server, session.id)

    post_events(http, session.id, result_of(action))

    stream.wait_for("idle")
    assert stream.types[-4:] == ["turn.item.added", "in_progress", "turn.failed", "idle"]
    again = opened(server, session.id, stream.ids[0])
    again.wait_for("idle")
    assert again.events == stream.events[1:]


def test_an_image_that_no_model_can_read_is_refused_before_it_is_accepted(
    client: OpenAI, http: httpx.Client, app_fixture: AppFixture
) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    content = [{"type": "input_text", "text": "Look"}, image]
    session = pause_session(client, app_fixture)
    result = result_of(session.required_actions[0]) | {"output": [image]}
    sent = {"type": "agent.session.input.message", "input": [{"role": "user", "content": content}]}
    begun = {"environment": NONE, "agent": AGENT, "input": sent["input"]}

    answers = [
        post_events(http, session.id, message("Hello"), result),
        post_events(http, session.id, message("Hello"), sent),
        http.post("/v1/agents/sessions", json=begun),
    ]

    assert [(answer.status_code, answer.json()["error"]["param"]) for answer in answers] == [
        (400, "events[1].output[0].image_url"),
        (400, "events[1].input[0].content[1].image_url"),
        (400, "input[0].content[1].image_url"),
    ]
    assert post_events(http, session.id, result_of(session.required_actions[0])).status_code == 202
    app_fixture.run_waiting()
    assert [turn.status for turn in client.beta.agents.sessions.turns.list(session.id)] == ["completed"]


def test_results_arrive_one_by_one(
    client: OpenAI, http: httpx.Client, server: Served, opened: Callable[..., OpenStream]
) -> None:
    time = WEATHER | {"name": "get_time"}
    session = stream_session(client, "Hello", tools=[WEATHER, time])[0].session
    stream = opened(server, session.id)
    post_events(http, session.id, message(f'{CALL}\ncall: get_time {{"city": "Oslo"}}'))
    stream.wait_for("requires_action")
    first, second = client.beta.agents.sessions.retrieve(session.id).required_actions

    assert post_events(http, session.id, result_of(first, "sunny")).status_code == 202
    assert client.beta.agents.sessions.retrieve(session.id).required_actions == [second]
    assert post_events(http, session.id, result_of(second, "noon")).status_code == 202

    stream.wait_for("idle")
    assert text_of(stream.events).count("sunny") == text_of(stream.events).count("noon") == 1


def test_a_result_of_an_unknown_call_is_refused(client: OpenAI, http: httpx.Client, app_fixture: AppFixture) -> None:
    session = pause_session(client, app_fixture)
    [action] = session.required_actions

    answer = post_events(http, session.id, result_of(action) | {"call_id": "call_other"})

    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "Unknown pending tool call: call_other"
    assert answer.json()["error"]["code"] == "invalid_request_error"


def test_a_repeated_result_changes_nothing(client: OpenAI, http: httpx.Client, app_fixture: AppFixture) -> None:
    session = pause_session(client, app_fixture)
    [action] = session.required_actions

    statuses = [post_events(http, session.id, result_of(action)).status_code for _ in range(2)]
    other = post_events(http, session.id, result_of(action, "rainy"))
    app_fixture.run_waiting()
    late = post_events(http, session.id, result_of(action))

    assert statuses == [202, 202]
    assert other.status_code == 400
    assert late.status_code == 202
    [turn] = client.beta.agents.sessions.turns.list(session.id).data
    assert turn.status == "completed"


def test_a_message_waits_for_the_results_of_the_turn(
    client: OpenAI, http: httpx.Client, app_fixture: AppFixture
) -> None:
    session = pause_session(client, app_fixture)
    [action] = session.required_actions

    assert post_events(http, session.id, message("And in Oslo?")).status_code == 202
    app_fixture.run_waiting()
    assert client.beta.agents.sessions.retrieve(session.id).status == "requires_action"
    post_events(http, session.id, result_of(action))
    app_fixture.run_waiting()

    app_fixture.run_waiting()

    turns = client.beta.agents.sessions.turns.list(session.id, order="asc").data
    assert [turn.status for turn in turns] == ["completed", "completed"]
    [said, *_] = client.beta.agents.sessions.turns.items.list(turns[1].id, session_id=session.id, order="asc").data
    assert "And in Oslo?" in said.to_json()


def test_a_cancelled_turn_leaves_the_session_usable(
    client: OpenAI, http: httpx.Client, server: Served, opened: Callable[..., OpenStream], app_fixture: AppFixture
) -> None:
    session = pause_session(client, app_fixture)
    stream = opened(server, session.id)
    stream.wait_for("requires_action")

    assert post_events(http, session.id, CANCEL).status_code == 202

    stream.wait_for("turn.cancelled")
    stream.wait_for("idle")
    post_events(http, session.id, message("Go on"))
    stream.wait_for("turn.completed")
    assert post_events(http, session.id, CANCEL).status_code == 202


def test_a_message_that_was_not_started_can_be_cancelled(
    client: OpenAI, http: httpx.Client, app_fixture: AppFixture
) -> None:
    session = start_session(client)

    post_events(http, session.id, CANCEL)
    app_fixture.run_waiting()

    assert client.beta.agents.sessions.retrieve(session.id).status == "idle"
    assert client.beta.agents.sessions.turns.list(session.id).data == []


def test_a_stream_goes_on_after_each_of_its_events(
    client: OpenAI, http: httpx.Client, server: Served, opened: Callable[..., OpenStream], app_fixture: AppFixture
) -> None:
    session = pause_session(client, app_fixture)
    whole = opened(server, session.id, stop="agent.session.idle")
    whole.wait_for("requires_action")
    post_events(http, session.id, result_of(session.required_actions[0]))
    whole.wait_for("idle")

    for place, last_id in enumerate(whole.ids[:-1]):
        rest = opened(server, session.id, last_id, stop="agent.session.idle")
        rest.wait_for("idle")
        assert [event["event_id"] for event in rest.events] == [
            event["event_id"] for event in whole.events[place + 1 :]
        ]


def test_the_id_of_an_event_is_a_position_too(client: OpenAI) -> None:
    session = stream_session(client, "say: One two")[0].session
    with client.beta.agents.sessions.stream(session.id, input="say: Three four") as stream:
        seen = [*stream]

    rest = client.beta.agents.sessions.events.stream(session.id, extra_headers={"Last-Event-ID": seen[0].event_id})

    with rest:
        assert [next(rest).event_id for _ in seen[1:]] == [event.event_id for event in seen[1:]]


def test_a_position_of_another_session_is_refused(client: OpenAI, http: httpx.Client) -> None:
    session = stream_session(client)[0].session
    for last in ("x", f"{session.id}:0:0", f"evt_{'0' * 42}"):
        answer = http.get(f"/v1/agents/sessions/{session.id}/events", headers={"Last-Event-ID": last})
        assert answer.status_code == 400, answer.text
        assert answer.json()["error"]["param"] == "Last-Event-ID"


def test_a_second_stream_sees_the_whole_running_turn(
    client: OpenAI, http: httpx.Client, server: Served, opened: Callable[..., OpenStream]
) -> None:
    session = stream_session(client, "Hello")[0].session
    first = opened(server, session.id)
    post_events(http, session.id, message("slow: 1\nTell me a story"))
    first.wait_for("turn.in_progress")

    second = opened(server, session.id)

    first.wait_for("idle")
    second.wait_for("idle")
    assert text_of(second.events) == text_of(first.events)


def test_a_misspelled_field_is_refused_by_name(client: OpenAI) -> None:
    with pytest.raises(BadRequestError) as raised:
        client.beta.agents.sessions.create(
            environment=NONE, agent=AGENT, input="Hello", extra_body={"metadta": {"a": "b"}}
        )

    assert raised.value.param == "metadta"


def test_each_ended_turn_has_a_trace(client: OpenAI) -> None:
    session = stream_session(client)[0].session

    [trace] = client.beta.agents.sessions.traces.list(session.id).data

    [turn] = client.beta.agents.sessions.turns.list(session.id).data
    assert (trace.id, trace.session_id) == (turn.id, session.id)
    spans: Any = trace.to_dict()["otlp"]
    names = [span["name"] for span in spans["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    assert names[0].startswith("invoke_agent")
    assert "chat scripted/demo" in names


def test_a_turn_that_has_not_ended_takes_no_place_among_the_traces(client: OpenAI) -> None:
    session = stream_session(client)[0].session
    with client.beta.agents.sessions.stream(session.id, input="Hello") as stream:
        assert [*stream]
    client.beta.agents.sessions.update(session.id, agent={"tools": [WEATHER]})
    with client.beta.agents.sessions.stream(session.id, input=CALL) as stream:
        next(event for event in stream if "requires_action" in event.type)

    newest, *ended = [turn.id for turn in client.beta.agents.sessions.turns.list(session.id)]

    assert [trace.id for trace in client.beta.agents.sessions.traces.list(session.id, limit=1)] == ended
    assert len(ended) == 2
    assert newest not in ended


def test_the_stream_goes_on_after_events_that_belong_to_no_turn(
    client: OpenAI, http: httpx.Client, server: Served, opened: Callable[..., OpenStream]
) -> None:
    created, *rest = stream_session(client)
    session = created.session
    from_start = opened(server, session.id, created.event_id, stop="agent.session.idle")
    from_start.wait_for("idle")
    client.beta.agents.sessions.update(session.id, agent={"model": "none/such"})
    whole = opened(server, session.id, stop="agent.session.idle")
    post_events(http, session.id, message("Hello"))
    whole.wait_for("idle")

    after_refusal = opened(server, session.id, whole.events[-1]["event_id"], stop="agent.session.idle")

    after_refusal.wait_for("idle")
    ids = [event.event_id for event in rest]
    assert [event["event_id"] for event in from_start.events] == ids
    assert [event["event_id"] for event in after_refusal.events[: len(ids)]] == ids  # again: the refusal has no place


def test_a_queued_turn_has_the_items_of_its_message(client: OpenAI) -> None:
    session = start_session(client, "Hello")

    [turn] = client.beta.agents.sessions.turns.list(session.id).data

    [item] = client.beta.agents.sessions.turns.items.list(turn.id, session_id=session.id).data
    assert turn.status == "queued"
    assert item.turn_id == turn.id
    assert "Hello" in item.to_json()


def test_expired_sessions_do_not_end_the_list(client: OpenAI, app_fixture: AppFixture) -> None:
    *old, young = [start_session(client).id for _ in range(3)]
    for session_id in old:
        expire(app_fixture, keys.listed_session(app_fixture.tenant or TENANT, session_id))

    found = [session.id for session in client.beta.agents.sessions.list(order="asc", limit=1)]

    assert found == [young]


def test_of_two_results_at_once_one_is_refused(client: OpenAI, http: httpx.Client, app_fixture: AppFixture) -> None:
    session = pause_session(client, app_fixture)
    [action] = session.required_actions

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda output: post_events(http, session.id, result_of(action, output)), "abcd"))

    assert sorted(answer.status_code for answer in answers) == [202, 400, 400, 400]
    assert {answer.json()["error"]["message"] for answer in answers if answer.status_code == 400} == {
        f"Unknown pending tool call: {action.call_id}"
    }
