"""Retries of the real client. It tries three times, and sends no key by which a server could detect a retry.

A provider's 429 is in test_provider_errors.py; API Gateway and Lambda answer 429 before the app is called.
"""

from collections.abc import Callable
from typing import Any

import httpx
import llama_stack_client
import pytest
from llama_stack_client import LlamaStackClient
from tests.api.api_client import WEATHER, answers_to, open_session, turn, turns_of
from tests.api.app_fixture import AppFixture, Served

ALL_ATTEMPTS = 3
Create = Callable[..., Any]


def parts(session: str) -> dict[str, Any]:
    _, _, _, agent, _, session_id = session.split("/")
    return {"agent_id": agent, "session_id": session_id}


def create(client: LlamaStackClient, session: str, text: str, *, stream: bool, **more: Any) -> Any:
    """Create a turn and read it to its end; raises as the client does."""
    messages: list[Any] = [{"role": "user", "content": text}]
    answer = client.agents.turn.create(**parts(session), messages=messages, stream=stream, **more)
    return list(answer) if stream else answer


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"toolgroups": ["mcp::nowhere"]}, llama_stack_client.BadRequestError),
        ({"documents": [{"content": "x", "mime_type": "image/png"}]}, llama_stack_client.BadRequestError),
    ],
)
def test_400_is_posted_once(
    client: LlamaStackClient,
    http: httpx.Client,
    server: Served,
    stream: bool,
    body: dict[str, Any],
    error: type[Exception],
) -> None:
    session = open_session(http)

    with pytest.raises(error):
        create(client, session, "Hello", stream=stream, **body)

    assert server.posts["turn"] == 1
    assert turns_of(http, session) == []


@pytest.mark.parametrize("stream", [True, False])
def test_404_is_posted_once(client: LlamaStackClient, http: httpx.Client, server: Served, stream: bool) -> None:
    session = open_session(http)
    http.delete(session)

    with pytest.raises(llama_stack_client.NotFoundError):
        create(client, session, "Hello", stream=stream)

    assert server.posts["turn"] == 1


def test_409_while_another_turn_runs_is_posted_once(
    client: LlamaStackClient, http: httpx.Client, server: Served, app_fixture: AppFixture
) -> None:
    session = open_session(http, model="faulty/gated")
    body = {"messages": [{"role": "user", "content": "Hello"}], "stream": True}

    with http.stream("POST", f"{session}/turn", json=body) as running:
        lines = running.iter_lines()
        next(lines)
        server.posts.clear()
        with pytest.raises(llama_stack_client.ConflictError):
            create(client, session, "Hello", stream=True)
        app_fixture.faulty.silence.set()
        list(lines)

    assert server.posts["turn"] == 1
    assert len(turns_of(http, session)) == 1


def test_409_and_400_of_a_resume_are_posted_once_and_a_repeated_resume_runs_nothing(
    client: LlamaStackClient, http: httpx.Client, server: Served
) -> None:
    session = open_session(http, client_tools=[WEATHER])
    paused = turn(http, session, "get_weather in Ulm")
    answers: Any = answers_to(paused, "sunny")
    place: dict[str, Any] = parts(session) | {"turn_id": paused["turn_id"]}

    with pytest.raises(llama_stack_client.BadRequestError):
        client.agents.turn.resume(**place, tool_responses=[], stream=True)
    list(client.agents.turn.resume(**place, tool_responses=answers, stream=True))
    with pytest.raises(llama_stack_client.ConflictError):
        client.agents.turn.resume(**place, tool_responses=[answers[0] | {"content": "rainy"}], stream=True)
    assert server.posts["resume"] == 3
    assert client.agents.turn.resume(**place, tool_responses=answers, stream=False).turn_id == paused["turn_id"]
    assert len(turns_of(http, session)[0]["steps"]) == 3


@pytest.mark.parametrize(
    ("model", "text", "status"),
    [
        ("scripted/demo", "fail: context", 400),
        ("faulty/crash", "Hello", 500),
        ("scripted/demo", "fail: before", 502),
        ("scripted/demo", "fail: throttled", 429),
        ("scripted/demo", "fail: overloaded", 503),
        ("faulty/late", "Hello", 504),
    ],
)
def test_what_fails_after_the_turn_was_begun_is_posted_once(
    client: LlamaStackClient, http: httpx.Client, server: Served, model: str, text: str, status: int
) -> None:
    session = open_session(http, model=model)

    with pytest.raises(llama_stack_client.APIStatusError) as refused:
        create(client, session, text, stream=False)

    assert refused.value.status_code == status
    assert server.posts["turn"] == 1
    assert [each["status"] for each in turns_of(http, session)] == ["failed"]


def test_what_fails_inside_a_stream_is_posted_once(
    client: LlamaStackClient, http: httpx.Client, server: Served
) -> None:
    session = open_session(http)

    chunks = create(client, session, "fail: before", stream=True)

    assert chunks[-1].error["code"] == "model_error"
    assert server.posts["turn"] == 1
    assert len(turns_of(http, session)) == 1


@pytest.mark.parametrize(("code", "status"), [("AccessDeniedException", 500), ("ThrottlingException", 503)])
def test_what_fails_before_anything_was_written_is_repeated_until_the_client_gives_up(
    client: LlamaStackClient, http: httpx.Client, server: Served, app_fixture: AppFixture, code: str, status: int
) -> None:
    session = open_session(http)

    with app_fixture.proxy.fail("UpdateItem", code), pytest.raises(llama_stack_client.InternalServerError) as refused:
        create(client, session, "Hello", stream=True)

    assert refused.value.status_code == status
    assert refused.value.response.headers.get("retry-after") == ("1" if status == 503 else None)
    assert server.posts["turn"] == ALL_ATTEMPTS
    assert turns_of(http, session) == []


@pytest.mark.parametrize(("operation", "times"), [("UpdateItem", 1), ("PutItem", 1), ("Query", 1)])
def test_a_turn_that_a_repetition_begins_is_begun_once(
    client: LlamaStackClient, http: httpx.Client, server: Served, app_fixture: AppFixture, operation: str, times: int
) -> None:
    """The Query reads the history. The registry is known, because the creation of the session has read it."""
    session = open_session(http)

    with app_fixture.proxy.fail(operation, times=times):
        answer = create(client, session, "say: once", stream=False)

    assert server.posts["turn"] == 2
    assert [each["turn_id"] for each in turns_of(http, session)] == [answer.turn_id]


def test_a_lease_whose_answer_was_lost_does_not_keep_the_session(http: httpx.Client, app_fixture: AppFixture) -> None:
    session = open_session(http)
    body = {"messages": [{"role": "user", "content": "say: hi"}]}

    with app_fixture.proxy.fail("UpdateItem", "InternalServerError", times=1, performed=True):
        refused = http.post(f"{session}/turn", json=body)

    assert refused.status_code == 503
    assert http.post(f"{session}/turn", json=body).status_code == 200


def test_a_turn_whose_first_write_may_have_happened_is_not_begun_again(
    client: LlamaStackClient, http: httpx.Client, server: Served, app_fixture: AppFixture
) -> None:
    session = open_session(http)

    with (
        app_fixture.proxy.fail("PutItem", "InternalServerError", times=1, performed=True),
        pytest.raises(llama_stack_client.InternalServerError),
    ):
        create(client, session, "say: once", stream=True)

    assert server.posts["turn"] == 1
    assert len(turns_of(http, session)) == 1
    assert turn(http, session, "say: next")["status"] == "completed"


def test_a_resume_whose_first_write_has_happened_without_an_answer_goes_on(
    client: LlamaStackClient, http: httpx.Client, server: Served, app_fixture: AppFixture
) -> None:
    session = open_session(http, client_tools=[WEATHER])
    paused = turn(http, session, "get_weather in Ulm")
    answers: Any = answers_to(paused, "sunny")

    with app_fixture.proxy.fail("PutItem", "InternalServerError", times=1, performed=True):
        resumed = client.agents.turn.resume(
            **parts(session), turn_id=paused["turn_id"], tool_responses=answers, stream=False
        )

    assert server.posts["resume"] == 1
    assert [step.step_type for step in resumed.steps] == ["inference", "tool_execution", "inference"]


def test_an_unsupported_operation_is_asked_once(client: LlamaStackClient, server: Served) -> None:
    with pytest.raises(llama_stack_client.InternalServerError) as unsupported:
        client.telemetry.query_spans(attribute_filters=[], attributes_to_return=[])

    assert unsupported.value.status_code == 501
    assert server.posts["spans"] == 1
