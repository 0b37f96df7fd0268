"""Automations of OpenAI's Agents API as the SDK reads them."""

from typing import Any

from openai.types.beta.agents.automation import Automation as SDKAutomation
from openai.types.beta.agents.automations import AutomationInvocation as SDKInvocation
from pydantic import TypeAdapter

from stint.domain.content import ImageContentItem, TextContentItem, image_at
from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.messages import UserMessage
from stint.domain.openai.automations import (
    Automation,
    AutomationInvocation,
    ExistingSessionTarget,
    InvocationError,
    NewSessionTarget,
)
from stint.domain.tools import AgentToolGroupWithArgs
from stint.openai_agents.agents import new_config
from stint.openai_agents.automation_targets import SessionPlan
from stint.openai_agents.automations import from_automation, from_invocation

SDK: TypeAdapter[Any] = TypeAdapter(SDKAutomation)
EXISTING = ExistingSessionTarget(session_id="session", instructions="Go on.")


def make_automation(**fields: Any) -> Automation:
    periodic = {"type": "periodic", "expression": "0 9 * * *", "timezone": "UTC", "target": EXISTING}
    return Automation(**{"id": "automation_1", "name": "Daily", "created_at": 5} | periodic | fields)


def show(automation: Automation) -> Any:
    return SDK.validate_json(from_automation(automation).to_json(), strict=True)


def new_session(agent: AgentConfig | None, **fields: Any) -> NewSessionTarget:
    image = ImageContentItem(image=image_at("https://example.com/cat.png", "auto"))
    content = [TextContentItem(text="What is it?"), image]
    plan = SessionPlan(agent=agent, messages=[UserMessage(content=content)], **fields)
    return NewSessionTarget(request=plan.model_dump(mode="json"))


def test_the_client_reads_both_types_of_automations() -> None:
    periodic = show(make_automation(status="paused", pause_reason="target_session_failed"))
    once = show(make_automation(type="once", run_at=9, expression=None, timezone=None, status="completed"))

    assert (periodic.type, periodic.expression, periodic.timezone) == ("periodic", "0 9 * * *", "UTC")
    assert (periodic.status, periodic.pause_reason, periodic.created_by.type) == (
        "paused",
        "target_session_failed",
        "developer",
    )
    assert (once.type, once.run_at, once.status, once.pause_reason, once.metadata) == ("once", 9, "completed", None, {})
    assert once.target.model_dump() == {"type": "existing_session", "session_id": "session", "instructions": "Go on."}


def test_a_target_shows_its_agent_without_headers() -> None:
    server = {"server_label": "docs", "server_url": "https://example.com/mcp", "headers": {"x-team": "a"}}
    tools = [AgentToolGroupWithArgs(name="builtin::mcp", args=server)]
    config = new_config("m").model_copy(update={"toolgroups": tools})

    shown = show(make_automation(target=new_session(config, vault_ids=["v"], metadata={"a": "b"}))).target

    assert shown.agent.model == "m"
    assert (shown.agent_id, shown.environment.type, shown.vault_ids, shown.metadata) == (
        None,
        "none",
        ["v"],
        {"a": "b"},
    )
    assert shown.agent.tools[0].transport.model_dump(exclude_none=True) == {
        "type": "http",
        "server_url": "https://example.com/mcp",
    }
    assert [part.type for part in shown.input[0].content] == ["input_text", "input_image"]


def test_a_target_with_a_saved_agent_has_no_configuration() -> None:
    shown = show(make_automation(target=new_session(None, agent_id="a"))).target

    assert (shown.agent_id, shown.agent) == ("a", None)


def test_an_invocation_shows_what_its_automation_was() -> None:
    error = InvocationError(code="agent_not_found", message="There is no such agent.")
    fields: Any = {"id": "i", "automation_id": "automation_1", "created_at": 7}
    failed = AutomationInvocation(**fields, scheduled_at=6, automation=make_automation(), status="failed", error=error)

    shown = SDKInvocation.model_validate_json(from_invocation(failed).to_json(), strict=True)
    manual = from_invocation(AutomationInvocation(**fields))

    assert shown.source.type == "automation"
    assert shown.source.automation.name == "Daily"
    assert shown.error is not None
    assert (shown.status, shown.scheduled_at, shown.error.code) == ("failed", 6, "agent_not_found")
    assert (manual.source.type, manual.status, manual.session_id) == ("manual", "queued", None)
