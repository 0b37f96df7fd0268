"""Requests for automations of OpenAI's Agents API."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from stint.domain.validation import describe_faults
from stint.openai_agents.schemas.automations import (
    AutomationCreateParams,
    AutomationUpdateParams,
    NewSessionParams,
)

CREATE: TypeAdapter[Any] = TypeAdapter(AutomationCreateParams)
MESSAGE = {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}
NEW = {"type": "new_session", "environment": {"type": "none"}, "input": [MESSAGE], "agent_id": "a"}
EXISTING = {"type": "existing_session", "session_id": "s", "instructions": "Go on."}
PERIODIC = {"type": "periodic", "name": "Daily", "expression": "0 9 * * *", "timezone": "UTC", "target": NEW}
ONCE = {"type": "once", "name": "Once", "run_at": 2_000_000_000, "target": EXISTING}
SERVER = {"type": "mcp", "server_label": "docs", "transport": {"type": "http", "server_url": "https://example.com/mcp"}}


def with_target(**fields: Any) -> dict[str, Any]:
    return PERIODIC | {"target": NEW | fields}


def with_server(**fields: Any) -> dict[str, Any]:
    """Return an automation with an agent of its own that has an MCP server."""
    return with_target(agent_id=None, agent={"model": "m", "tools": [SERVER | fields]})


def transport(**fields: Any) -> dict[str, Any]:
    return {"transport": {"type": "http", "server_url": "https://example.com/mcp"} | fields}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "The automation needs a type"),
        (PERIODIC | {"type": "weekly"}, "'weekly' is not supported"),
        (PERIODIC | {"name": ""}, "name: String should have at least 1"),
        (PERIODIC | {"name": None}, "name: Input should be a valid string"),
        (PERIODIC | {"expression": "0 " * 200}, "expression: String should have at most 256"),
        (PERIODIC | {"timezone": "x" * 51}, "timezone: String should have at most 50"),
        (PERIODIC | {"metadata": {"a": "b" * 513}}, "metadata.a: String should have at most 512"),
        (ONCE | {"run_at": "2000000000"}, "run_at: Input should be a valid integer"),
        (ONCE | {"run_at": 2_000_000_000.5}, "run_at: Input should be a valid integer"),
        (ONCE | {"run_at": 10**20}, "run_at: Input should be less than or equal"),
        (ONCE | {"run_at": True}, "run_at: Input should be a valid integer"),
        (ONCE | {"target": {"type": "environment"}}, "supported types are new_session, existing_session"),
        (ONCE | {"target": EXISTING | {"instructions": ""}}, "instructions: String should have at least 1"),
        (ONCE | {"target": {"type": "existing_session"}}, "session_id: Field required"),
        (with_target(input="Hi"), "input: Input should be a valid list"),
        (with_target(input=[]), "input: List should have at least 1"),
        (with_target(environment={"type": "self_hosted"}), "sessions connect to no environments"),
        (with_target(environment=None), "environment: Input should be"),
        (with_target(agent_id=None), "agent_id is missing"),
        (with_target(agent={"model": "m"}), "not both"),
        (with_target(agent_id=None, agent={}), "model: Field required"),
        (with_target(agent_id=None, agent={"model": "m", "tools": [{"type": "automations"}]}), "remove the tool"),
        (with_server(**transport(authorization="Bearer x")), "stores no secrets. Put the credential into a vault"),
        (with_server(**transport(headers={"AUTHORIZATION ": "Bearer x"})), "stores no secrets"),
        (with_server(credential_id="cred_1"), "vault_ids is missing"),
    ],
)
def test_what_an_automation_cannot_be_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as refused:
        CREATE.validate_python(given)

    assert says in describe_faults(refused.value)


def test_a_target_has_an_agent_of_its_own() -> None:
    made = CREATE.validate_python(with_server() | {"metadata": None}).target

    assert isinstance(made, NewSessionParams)
    assert made.agent is not None
    assert (made.agent.model, made.agent_id, made.vault_ids, made.metadata) == ("m", None, [], {})


def test_an_update_has_the_given_fields_alone() -> None:
    given = AutomationUpdateParams.model_validate({"name": "Other", "run_at": None, "target": EXISTING})

    assert given.model_dump(exclude_none=True) == {"name": "Other", "target": EXISTING}
