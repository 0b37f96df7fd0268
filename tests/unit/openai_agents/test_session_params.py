"""Requests for sessions of OpenAI's Agents API, and the objects of turns and sessions."""

import json
from typing import Any

import pytest
from openai.types.beta.agent_session import AgentSession
from openai.types.beta.agents.sessions import Turn as SDKTurn
from pydantic import ValidationError
from tests.unit.openai_agents.turn_fixture import (
    COMPLETED,
    FAILED,
    LABELS,
    NOW,
    WAITING,
    answer,
    call,
    dump,
    ending,
    record,
    stored,
)

from stint.domain.content import TextContentItem
from stint.domain.run_outcome import ErrorInfo, RunStatus
from stint.domain.tools import ToolResponse
from stint.openai_agents.agents import from_session_agent, to_session_config
from stint.openai_agents.contents import to_content, to_messages
from stint.openai_agents.schemas.agents import SessionAgentParams
from stint.openai_agents.schemas.sessions import (
    AgentSessionObject,
    SessionCreateParams,
    SessionEventsParams,
    SessionUpdateParams,
    ToolResultEvent,
)
from stint.openai_agents.sessions import NO_MESSAGE, to_answer
from stint.openai_agents.turns import from_turn, required_actions, to_code

ENVIRONMENT = {"environment": {"type": "none"}}
MESSAGE = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}


def test_a_text_is_one_message() -> None:
    params = SessionCreateParams.model_validate({**ENVIRONMENT, "input": "Hi"})

    assert params.input is not None
    assert [message.content for message in to_messages(params.input)] == ["Hi"]
    assert params.stream_options.include_obfuscation


def test_texts_and_images_keep_their_order() -> None:
    image = {"type": "input_image", "image_url": "https://example.com/cat.png"}
    message = {"role": "user", "content": [image, {"type": "input_text", "text": "What is it?"}]}
    params = SessionCreateParams.model_validate({**ENVIRONMENT, "input": [message]})

    assert params.input is not None
    content = to_messages(params.input)[0].content
    assert isinstance(content, list)
    assert [item.type for item in content] == ["image", "text"]


CHOOSING = {
    "type": "mcp",
    "server_label": "docs",
    "transport": {"type": "http", "server_url": "https://example.com/mcp"},
    "credential_id": "cred_1",
}


@pytest.mark.parametrize(
    ("fields", "place", "says"),
    [
        ({}, "", "input is missing"),
        ({"input": None}, "", "input is missing"),
        ({"input": []}, "input", "at least 1"),
        ({"input": [{"role": "user", "content": "Hi"}]}, "content", "valid list"),
        ({"input": [{"role": "assistant", "content": []}]}, "role", "'user'"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "0", "vector store"),
        ({"input": "Hi", "environment": {"type": "openai_hosted"}}, "environment", "no sandboxes"),
        ({"input": "Hi", "environment": {"type": "self_hosted"}}, "environment", "no environments"),
        ({"input": "Hi", "vault_ids": ["v"] * 17}, "vault_ids", "at most 16"),
        ({"input": "Hi", "agent": {"tools": [CHOOSING]}}, "", "vault_ids is missing"),
        ({"input": "Hi", "review": "auto_review"}, "review", "none"),
    ],
)
def test_what_a_session_cannot_be_is_refused(fields: dict[str, Any], place: str, says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SessionCreateParams.model_validate({**ENVIRONMENT, **fields})

    problem = refused.value.errors()[0]
    assert str((problem["loc"] or ("",))[-1]) == place
    assert says in problem["msg"]


def test_hints_of_a_session_are_accepted() -> None:
    hints: dict[str, Any] = {
        "vault_ids": [],
        "review": "none",
        "prompt_cache_options": {"ttl": "12h"},
        "metadata": None,
    }
    params = SessionCreateParams.model_validate({**ENVIRONMENT, **hints, "input": "Hi"})

    assert params.prompt_cache_options is not None
    assert (params.prompt_cache_options.ttl, params.metadata) == ("12h", {})


def test_all_kinds_of_events_are_read() -> None:
    answered = {
        "type": "agent.session.input.tool_result",
        "turn_id": "t",
        "call_id": "c",
        "success": True,
        "output": "1",
    }
    decided = {
        "type": "agent.session.input.mcp_approval_request_result",
        "request_id": "r",
        "response": {"type": "mcp_tool_call", "decision": "deny"},
    }
    sent: list[dict[str, Any]] = [
        {"type": "agent.session.input.message", "input": [MESSAGE]},
        {"type": "agent.session.input.cancel"},
        answered,
        answered | {"success": False, "output": None, "error": "Tool handler failed."},
        decided,
    ]

    events = SessionEventsParams.model_validate({"events": sent}).events

    assert [event.type for event in events] == [event["type"] for event in sent]
    assert isinstance(events[2], ToolResultEvent)
    assert to_content(events[2].output or "") == "1"


@pytest.mark.parametrize(
    ("events", "says"),
    [
        ([], "at least 1"),
        ([{"type": "agent.session.input.cancel"}] * 21, "at most 20"),
        ([{"type": "agent.session.input.computer_use_approval_request_result"}], "no computer"),
        ([{"type": "agent.session.input.message", "input": []}], "at least 1"),
    ],
)
def test_other_events_are_refused(events: list[Any], says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        SessionEventsParams.model_validate({"events": events})

    assert says in refused.value.errors()[0]["msg"]


def test_a_single_text_of_a_result_is_a_string() -> None:
    event = ToolResultEvent.model_validate(
        {
            "type": "agent.session.input.tool_result",
            "turn_id": "t",
            "call_id": "c",
            "success": True,
            "output": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}],
        }
    )

    assert event.output is not None
    assert to_content(event.output) == [TextContentItem(text="a"), TextContentItem(text="b")]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [(None, "in_progress"), (WAITING, "waiting"), (COMPLETED, "completed"), (FAILED, "failed")],
)
def test_a_turn_shows_its_status(outcome: Any, status: str) -> None:
    turn = stored(record(answer("Hello"), outcome)).to_turn()

    shown = dump(from_turn(turn, "agent_1"))

    SDKTurn.model_validate(shown, strict=True)
    assert shown["status"] == status
    assert (shown["error"] is not None) == (status == "failed")
    assert (shown["completed_at"] is not None) == (status in ("completed", "failed"))
    assert (shown["usage"] is not None) == (outcome is not None)


def test_a_queued_turn_has_not_started() -> None:
    shown = from_turn(stored().to_turn(), "agent_1", queued=True)

    assert (shown.status, shown.started_at) == ("queued", None)


@pytest.mark.parametrize(
    ("code", "kind", "expected"),
    [
        ("rate_limit_exceeded", "server_error", "rate_limit_exceeded"),
        ("model_not_found", "invalid_request_error", "resource_not_found"),
        ("deadline_exceeded", "server_error", "request_timeout"),
        ("interrupted", "server_error", "internal_error"),
        ("something_new", "invalid_request_error", "invalid_request"),
        ("something_new", "server_error", "server_error"),
    ],
)
def test_errors_have_codes_of_the_api(code: str, kind: str, expected: str) -> None:
    assert to_code(ErrorInfo(message="x", type=kind, code=code)) == expected


def test_a_session_requires_results_and_approvals() -> None:
    ask, look = call("ask", arguments={"city": "Bern"}), call("look_up")
    turn = stored(record(answer("", ask, look), ending(RunStatus.awaiting_input))).to_turn()
    actions = required_actions(turn, LABELS.get, {look.call_id})
    config = to_session_config(None, SessionAgentParams.model_validate({"model": "m"}))

    session = AgentSessionObject(
        id="sess_1",
        created_at=int(NOW.timestamp()),
        last_active_at=int(NOW.timestamp()),
        status="requires_action",
        agent=from_session_agent("agent_1", config),
        required_actions=actions,
    )

    shown = json.loads(session.to_json())
    AgentSession.model_validate(shown, strict=True)
    function, approval = shown["required_actions"]
    assert function["arguments"] == {"city": "Bern"}
    assert (approval["request_id"], approval["request"]["server_label"]) == (look.call_id, "docs")
    assert required_actions(stored(record(answer("", ask), COMPLETED)).to_turn(), LABELS.get) == []


@pytest.mark.parametrize(
    "changed",
    [
        *({"agent": {name: value}} for name, value in (("instructions", "x"), ("text", {}), ("input_shields", []))),
        *({name: value} for name, value in (("agent_id", "a"), ("vault_ids", []))),
    ],
    ids=str,
)
def test_what_no_update_of_a_session_changes_is_refused_by_name(changed: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="cannot be changed") as refused:
        SessionUpdateParams.model_validate(changed)

    [name] = changed.get("agent", changed)
    assert refused.value.errors()[0]["loc"][-1] == name


def test_a_failed_result_without_an_error_tells_the_model_that_it_failed() -> None:
    event = {"type": "agent.session.input.tool_result", "turn_id": "t", "call_id": "c", "success": False}
    given = to_answer(ToolResultEvent.model_validate(event)).answer

    assert isinstance(given, ToolResponse)
    assert given.content == NO_MESSAGE
