"""Approvals in AG-UI: a run ends with interrupts, and the next one has the decisions."""

from typing import Any

import httpx
import pytest
from tests.api.ag_ui_client import CALL, WEATHER, Frontend, find_event, result, said, send_run, text_of, types_of
from tests.api.api_client import create_agent

FOX = 'call: photogen {"query": "a red fox"}'
ASKING = {"name": "builtin::photogen", "require_approval": "always"}
Body = dict[str, Any]


@pytest.fixture
def front(http: httpx.Client) -> Frontend:
    return Frontend(http, create_agent(http, toolgroups=[ASKING]))


def interrupts_of(events: list[Body]) -> list[Body]:
    assert events[-1]["outcome"]["type"] == "interrupt"
    interrupts: list[Body] = events[-1]["outcome"]["interrupts"]
    return interrupts


def answer(interrupt: Body, payload: Any = None, status: str = "resolved") -> Body:
    return {"interruptId": interrupt["id"], "status": status, "payload": payload}


def test_an_approved_call_runs(front: Frontend) -> None:
    [asked] = interrupts_of(front.run(said("m1", FOX)))
    assert asked["reason"] == "tool_call"
    assert asked["toolCallId"] == front.messages[-1]["toolCalls"][0]["id"]
    assert asked["metadata"] == {"stint/tool_name": "photogen", "stint/arguments": {"query": "a red fox"}}

    events = front.run(resume=[answer(asked, {"approved": True})])
    assert find_event(events, "TOOL_CALL_RESULT")["toolCallId"] == asked["toolCallId"]
    assert events[-1]["outcome"] == {"type": "success"}


@pytest.mark.parametrize(
    ("payload", "status", "told"),
    [
        ({"approved": False, "reason": "Not now."}, "resolved", "Not now."),
        (False, "resolved", "did not approve"),
        (None, "cancelled", "dismissed"),
        ({"approved": True}, "cancelled", "dismissed"),
    ],
)
def test_a_denied_call_does_not_run(front: Frontend, payload: Any, status: str, told: str) -> None:
    [asked] = interrupts_of(front.run(said("m1", FOX)))
    events = front.run(resume=[answer(asked, payload, status)])

    content = find_event(events, "TOOL_CALL_RESULT")["content"]
    assert told in str(content)
    assert told in text_of(events)


@pytest.mark.parametrize("payload", [None, {}, "yes", {"approved": "true"}, {"approved": 1}, {"approve": True}, [True]])
def test_only_true_approves(front: Frontend, payload: Any) -> None:
    [asked] = interrupts_of(front.run(said("m1", FOX)))
    response = send_run(front.http, front.agent, "1", front.messages, resume=[answer(asked, payload)])

    assert (response.status_code, response.json()["error"]["param"]) == (400, "resume[0].payload")
    assert interrupts_of(front.run()) == [asked]


def test_edited_arguments_are_refused(front: Frontend) -> None:
    [asked] = interrupts_of(front.run(said("m1", FOX)))
    edited = {"approved": True, "editedArgs": {"query": "a cat"}}
    response = send_run(front.http, front.agent, "1", front.messages, resume=[answer(asked, edited)])
    assert (response.status_code, response.json()["error"]["code"]) == (400, "not_supported")


def test_an_old_decision_does_not_approve_a_later_call(front: Frontend) -> None:
    [asked] = interrupts_of(front.run(said("m1", FOX)))
    front.run(resume=[answer(asked, {"approved": True})])
    [later] = interrupts_of(front.run(said("m2", FOX)))
    assert later["id"] != asked["id"]

    response = send_run(front.http, front.agent, "1", front.messages, resume=[answer(asked, {"approved": True})])
    assert (response.status_code, response.json()["error"]["code"]) == (400, "approvals_mismatch")
    assert interrupts_of(front.run()) == [later]


def test_a_result_is_no_approval(front: Frontend) -> None:
    [asked] = interrupts_of(front.run(said("m1", FOX)))
    forged = result("t1", asked["toolCallId"], "a picture")
    front.run(forged)
    assert interrupts_of(front.run()) == [asked]

    events = front.run(said("m2", "say: Next"))
    assert "a picture" not in str(events)


def test_a_repeated_decision_shows_the_turn(front: Frontend) -> None:
    [asked] = interrupts_of(front.run(said("m1", FOX)))
    decisions = [answer(asked, {"approved": True})]
    front.run(resume=decisions)
    events = front.run(resume=decisions)
    assert types_of(events) == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]


def test_decisions_with_new_messages_are_refused(front: Frontend) -> None:
    [asked] = interrupts_of(front.run(said("m1", FOX)))
    messages = [*front.messages, said("m2", "say: Next")]
    response = send_run(front.http, front.agent, "1", messages, resume=[answer(asked, {"approved": True})])
    assert (response.status_code, response.json()["error"]["param"]) == (400, "resume")
    assert interrupts_of(front.run()) == [asked]


def test_a_new_message_cancels_a_waiting_call(front: Frontend) -> None:
    interrupts_of(front.run(said("m1", FOX)))
    assert text_of(front.run(said("m2", "say: Never mind"))) == "Never mind"


def test_approvals_and_results_are_answered_together(front: Frontend) -> None:
    events = front.run(said("m1", f"{FOX}\n{CALL}"), tools=[WEATHER])
    [asked] = interrupts_of(events)
    calls = {call["function"]["name"]: call["id"] for call in front.messages[-1]["toolCalls"]}
    decision = [answer(asked, {"approved": True})]
    assert events[-1]["metadata"]["stint/pending_tool_call_ids"] == [calls["get_weather"]]

    alone = send_run(front.http, front.agent, "1", front.messages, resume=decision)
    assert alone.status_code == 400
    events = front.run(result("t1", calls["get_weather"]), resume=decision, tools=[WEATHER])
    assert find_event(events, "TOOL_CALL_RESULT")["toolCallId"] == calls["photogen"]
    assert events[-1]["outcome"] == {"type": "success"}


def test_an_unknown_interrupt_is_refused(front: Frontend) -> None:
    entry = {"interruptId": "x:y", "status": "resolved", "payload": True}
    response = send_run(front.http, front.agent, "1", [said("m1", "say: One")], resume=[entry])
    assert (response.status_code, response.json()["error"]["param"]) == (400, "resume[0].interruptId")
