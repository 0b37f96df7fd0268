"""Automations with OpenAI's client, whose schedules fire when a test says so."""

import time
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from openai import OpenAI
from openai.types.beta.agents.automations import AutomationInvocation
from tests.api.agents_api_client import AGENT, BETA, NONE, start_session
from tests.api.app_fixture import AppFixture, Served
from tests.api.responses_client import MODEL, openai_client
from tests.api.test_budgeted_sessions import spend
from tests.clock import CLOCK

AUTOMATIONS = "/v1/agents/automations"
DAILY: Any = {"type": "periodic", "name": "Daily", "expression": "0 9 * * *", "timezone": "Europe/Oslo"}
FAR = 4_000_000_000


@pytest.fixture
def client(server: Served) -> Iterator[OpenAI]:
    with openai_client(server) as client:
        yield client


def begin(said: str = "Hello", **fields: Any) -> Any:
    """Return a target that begins sessions."""
    content = [{"type": "input_text", "text": said}]
    target = {"type": "new_session", "environment": NONE, "input": [{"role": "user", "content": content}]}
    return target | ({} if "agent_id" in fields else {"agent": AGENT}) | fields


def send_to(session: Any, instructions: str = "say: Go on.") -> Any:
    return {"type": "existing_session", "session_id": session.id, "instructions": instructions}


def refuse(http: httpx.Client, path: str = AUTOMATIONS, **body: Any) -> tuple[int, Any]:
    """Return the status and the error of a POST that is refused."""
    answer = http.post(path, json=body, headers=BETA)
    assert answer.status_code >= 400, answer.text
    return answer.status_code, answer.json()["error"]


def run_again(client: OpenAI, automation: Any, fixture: AppFixture) -> AutomationInvocation:
    """Run an automation now, and return its invocation after the worker has handled it."""
    invocations = client.beta.agents.automations.invocations
    queued = invocations.create(automation.id)
    assert queued.status == "queued"
    fixture.run_automations()
    return invocations.retrieve(queued.id, automation_id=automation.id)


def test_both_types_are_managed_with_the_client(client: OpenAI, app_fixture: AppFixture) -> None:
    automations = client.beta.agents.automations
    daily = automations.create(**DAILY, target=begin("say: Hi", vault_ids=[]), metadata={"team": "a"})
    session = start_session(client)
    once: Any = automations.create(type="once", name="Once", run_at=FAR, target=send_to(session))

    assert (daily.object, daily.status, daily.pause_reason, daily.metadata) == (
        "agent.automation",
        "active",
        None,
        {"team": "a"},
    )
    assert (once.run_at, once.target.session_id, once.created_by.type) == (FAR, session.id, "developer")
    assert automations.retrieve(daily.id) == daily
    assert {each.expression for each in app_fixture.schedules.active.values()} == {
        "cron(0 9 * * ? *)",
        "at(2096-10-02T07:06:40)",
    }
    changed: Any = automations.update(daily.id, name="Weekly", expression="0 9 * * mon", metadata={})
    assert (changed.name, changed.expression, changed.timezone, changed.metadata) == (
        "Weekly",
        "0 9 * * mon",
        "Europe/Oslo",
        {},
    )
    assert automations.pause(daily.id).status == "paused"
    assert len(app_fixture.schedules.active) == 1
    resumed = automations.resume(daily.id)
    assert (resumed.status, resumed.pause_reason, len(app_fixture.schedules.active)) == ("active", None, 2)
    deleted = automations.delete(daily.id)
    assert (deleted.id, deleted.deleted, deleted.object) == (daily.id, True, "agent.automation.deleted")
    assert len(app_fixture.schedules.active) == 1
    with pytest.raises(openai.NotFoundError):
        automations.retrieve(daily.id)


def test_lists_have_pages_an_order_and_a_filter_by_session(client: OpenAI) -> None:
    automations, session = client.beta.agents.automations, start_session(client)
    made = [automations.create(**DAILY, target=begin()).id for _ in range(2)]
    made.append(automations.create(**DAILY, target=send_to(session)).id)

    assert [each.id for each in automations.list(limit=1)] == made[::-1]
    assert [each.id for each in automations.list(limit=2, order="asc")] == made
    assert [each.id for each in automations.list(order="asc", after=made[0]).data] == made[1:]
    assert [each.id for each in automations.list(session_id=session.id)] == made[2:]
    assert automations.list(session_id="another").data == []
    with pytest.raises(openai.NotFoundError):
        automations.list(after="automation_none")


def test_a_run_begins_a_session_with_its_input(client: OpenAI, app_fixture: AppFixture) -> None:
    saved = client.beta.agents.create(model=MODEL)
    daily = client.beta.agents.automations.create(
        **DAILY, target=begin("say: Good morning", agent_id=saved.id, metadata={"topic": "news"})
    )

    done = run_again(client, daily, app_fixture)
    app_fixture.run_waiting()

    assert (done.status, done.source.type, done.scheduled_at, done.error) == ("completed", "manual", None, None)
    assert done.session_id is not None
    session = client.beta.agents.sessions.retrieve(done.session_id)
    assert (session.agent.id, session.metadata, session.status) == (saved.id, {"topic": "news"}, "idle")
    items: Any = client.beta.agents.sessions.items.list(session.id, order="asc").data
    assert [item.content[0].text for item in items] == ["say: Good morning", "Good morning"]


def test_a_run_sends_its_instructions_to_the_session(client: OpenAI, app_fixture: AppFixture) -> None:
    session = start_session(client, "say: First")
    app_fixture.run_waiting()
    automation = client.beta.agents.automations.create(**DAILY, target=send_to(session, "say: Second"))

    first, skipped = (run_again(client, automation, app_fixture) for _ in range(2))
    app_fixture.run_waiting()
    third = run_again(client, automation, app_fixture)
    app_fixture.run_waiting()

    assert (first.status, first.session_id) == ("completed", session.id)
    assert (skipped.status, skipped.skip_reason) == ("skipped", "pending_delivery"), skipped
    assert third.status == "completed"
    items: Any = client.beta.agents.sessions.items.list(session.id, order="asc").data
    assert [item.content[0].text for item in items if item.role == "assistant"] == ["First", "Second", "Second"]


def test_a_schedule_runs_a_time_once_and_keeps_what_the_automation_was(client: OpenAI, app_fixture: AppFixture) -> None:
    automations = client.beta.agents.automations
    once = automations.create(type="once", name="Once", run_at=int(time.time()) + 600, target=begin("say: Now"))
    CLOCK.move(601)

    for _ in range(2):
        app_fixture.fire_schedules()
        app_fixture.run_automations()

    [run] = automations.invocations.list(once.id).data
    assert (run.status, run.source.type) == ("completed", "automation")
    assert run.source.type == "automation"
    assert (run.source.automation.name, run.source.automation.status) == ("Once", "active")
    assert run.scheduled_at is not None
    assert automations.retrieve(once.id).status == "completed"
    assert [each.id for each in client.beta.agents.sessions.list()] == [run.session_id]
    with pytest.raises(openai.ConflictError) as refused:
        automations.resume(once.id)
    assert refused.value.code == "automation_completed"


def test_invocations_have_pages_and_an_order(client: OpenAI, app_fixture: AppFixture) -> None:
    invocations = client.beta.agents.automations.invocations
    daily = client.beta.agents.automations.create(**DAILY, target=begin())
    made = [run_again(client, daily, app_fixture).id for _ in range(3)]

    assert [each.id for each in invocations.list(daily.id, limit=1)] == made[::-1]
    assert [each.id for each in invocations.list(daily.id, limit=2, order="asc")] == made
    assert [each.id for each in invocations.list(daily.id, after=made[1]).data] == made[:1]
    with pytest.raises(openai.NotFoundError):
        invocations.retrieve("invocation_none", automation_id=daily.id)


def test_each_session_of_an_automation_has_the_budget_of_the_target(client: OpenAI, app_fixture: AppFixture) -> None:
    budget = {"max_dollars": 0.5, "max_tokens": 10}
    saved = client.beta.agents.create(model=MODEL)
    targets = [begin(budget=budget), begin(agent_id=saved.id, budget=budget)]
    made: Any = [client.beta.agents.automations.create(**DAILY, target=target) for target in targets]
    assert [each.target.budget for each in made] == [budget] * 2

    sessions = [run_again(client, each, app_fixture).session_id for each in made]

    shown: Any = [client.beta.agents.sessions.retrieve(str(each)) for each in sessions]
    assert [(each.budget["max_dollars"], each.budget["max_tokens"]) for each in shown] == [(0.5, 10)] * 2


def test_a_run_of_an_automation_fails_when_the_budget_of_its_session_is_spent(
    client: OpenAI, app_fixture: AppFixture
) -> None:
    session = client.beta.agents.sessions.create(
        environment=NONE, agent=AGENT, input="Hello", extra_body={"budget": {"max_tokens": 1_000}}
    )
    app_fixture.run_waiting()
    automation = client.beta.agents.automations.create(**DAILY, target=send_to(session))
    spend(app_fixture, session.id)

    done = run_again(client, automation, app_fixture)

    assert (done.status, done.error and done.error.code) == ("failed", "insufficient_quota")


def test_a_deleted_target_pauses_the_automation(client: OpenAI, app_fixture: AppFixture) -> None:
    session, saved = start_session(client), client.beta.agents.create(model=MODEL)
    automations = client.beta.agents.automations
    made = [automations.create(**DAILY, target=target) for target in (send_to(session), begin(agent_id=saved.id))]
    client.beta.agents.sessions.delete(session.id)
    client.beta.agents.delete(saved.id)

    app_fixture.fire_schedules()
    app_fixture.run_automations()

    left = [automations.retrieve(each.id) for each in made]
    assert [each.status for each in left] == ["paused", "paused"]
    assert [each.pause_reason for each in left] == ["target_session_failed", "target_agent_deleted"]
    runs = [automations.invocations.list(each.id).data[0] for each in made]
    assert [run.status for run in runs] == ["failed", "failed"]
    assert not app_fixture.schedules.active


SERVER: Any = {
    "type": "mcp",
    "server_label": "x",
    "transport": {"type": "http", "server_url": "http://169.254.169.254/mcp"},
}


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ({"agent_id": "01990000-0000-7000-8000-000000000000"}, 404, "agent_not_found"),
        ({"agent_id": "01990000-0000-8000-8000-000000000000"}, 409, "inline_agent"),
        ({"vault_ids": ["vault_none"]}, 400, "credentials_key_missing"),
        ({"agent": {"model": MODEL, "tools": [SERVER]}}, 400, "url_not_allowed"),
    ],
)
def test_what_no_run_could_do_is_refused_when_the_automation_is_created(
    http: httpx.Client, app_fixture: AppFixture, target: dict[str, Any], status: int, code: str
) -> None:
    refused, error = refuse(http, **DAILY, target=begin(**target))

    assert (refused, error["code"]) == (status, code), error
    assert not app_fixture.schedules.active


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"expression": "0 9 1 * mon"}, "unsupported_cron_expression", "expression"),
        ({"expression": "0 0 30 2 *"}, "invalid_cron_expression", "expression"),
        ({"type": "once", "run_at": 5}, "run_at_in_past", "run_at"),
    ],
)
def test_times_that_never_come_are_refused(http: httpx.Client, fields: Any, code: str, param: str) -> None:
    status, error = refuse(http, **(DAILY | fields), target=begin())

    assert (status, error["code"], error["param"]) == (400, code, param)


def test_a_field_that_is_missing_is_named_as_one_of_the_type(http: httpx.Client) -> None:
    status, error = refuse(http, type="once", name="Once", target=begin())

    assert (status, error["param"], error["message"]) == (400, "run_at", "run_at: Field required")


def test_an_update_keeps_the_types(client: OpenAI, http: httpx.Client) -> None:
    daily = client.beta.agents.automations.create(**DAILY, target=begin())
    path, session = f"{AUTOMATIONS}/{daily.id}", start_session(client)

    assert refuse(http, path, run_at=FAR)[1]["param"] == "run_at"
    assert refuse(http, path, target=send_to(session))[1]["param"] == "target.type"
    assert client.beta.agents.automations.retrieve(daily.id) == daily


def test_a_repetition_with_a_key_creates_one_automation_and_one_invocation(
    client: OpenAI, http: httpx.Client, app_fixture: AppFixture
) -> None:
    key = BETA | {"Idempotency-Key": "the-key"}
    first, second = (http.post(AUTOMATIONS, json=DAILY | {"target": begin()}, headers=key) for _ in range(2))
    path = f"{AUTOMATIONS}/{first.json()['id']}/invocations"
    runs = [http.post(path, headers=BETA | {"Idempotency-Key": "another-key"}).json()["id"] for _ in range(2)]
    app_fixture.run_automations()

    assert first.json() == second.json()
    assert runs[0] == runs[1]
    assert len(client.beta.agents.automations.list().data) == 1
    assert len(client.beta.agents.sessions.list().data) == 1


def test_an_automation_of_an_end_user_is_hidden_from_others_and_begins_sessions_of_that_user(
    client: OpenAI, http: httpx.Client, app_fixture: AppFixture
) -> None:
    ann, bob = ({"X-Stint-User": name} for name in ("ann", "bob"))
    automations = client.beta.agents.automations
    daily = automations.create(**DAILY, target=begin(), extra_headers=ann)
    run = run_again(client, daily, app_fixture)

    assert automations.list(extra_headers=bob).data == []
    assert [each.id for each in automations.list(extra_headers=ann)] == [daily.id]
    for refused in (automations.retrieve, automations.pause, automations.delete, automations.invocations.create):
        with pytest.raises(openai.NotFoundError):
            refused(daily.id, extra_headers=bob)
    owned = [(each["kind"], each["id"]) for each in http.get("/v1/admin/users/ann").json()["data"]]
    assert ("automation", daily.id) in owned
    assert [identifier.split(":")[-1] for kind, identifier in owned if kind == "session"] == [run.session_id]


def test_the_automations_of_an_erased_end_user_and_their_schedules_are_deleted(
    client: OpenAI, http: httpx.Client, app_fixture: AppFixture
) -> None:
    automations = client.beta.agents.automations
    daily = automations.create(**DAILY, target=begin(), extra_headers={"X-Stint-User": "ann"})
    kept = automations.create(**DAILY, target=begin())

    erased = http.delete("/v1/admin/users/ann").json()

    assert (erased["deleted"], erased["complete"]) == ({"automation": 1}, True)
    assert [each.id for each in automations.list()] == [kept.id]
    assert [name.partition(".")[0] for name in app_fixture.schedules.active] == [kept.id]
    assert daily.id != kept.id
