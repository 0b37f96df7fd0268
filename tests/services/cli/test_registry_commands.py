"""`registry shadowed`, beside a running `make run` and with the variables of a deployed stack."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.services.cli.test_key_commands import Shell, shell
from tests.store.conftest import Cloud

from stint.domain.llama_stack.registrations import (
    ModelRegisterRequest,
    Owner,
    ShieldRegisterRequest,
    ToolGroup,
    ToolGroupRegisterRequest,
)
from stint.services.registry.catalogue import model_of, shield_of, toolgroup_of
from stint.store.registrations import Registrations

__all__ = ["shell"]

CRM = {"toolgroup_id": "crm", "provider_id": "remote-execution", "args": {"tools": []}}
VARIABLES = {
    "STINT_REGISTRY": json.dumps(
        {"toolgroups": [CRM], "models": [{"model_id": "house", "provider_model_id": "openai/gpt-5"}]}
    ),
    "STINT_DEFAULT_MODEL": "openai/gpt-5",
    "AWS_ACCESS_KEY_ID": "that of the function",
}


def group(name: str, provider: str = "wolfram-alpha") -> ToolGroup:
    return toolgroup_of(ToolGroupRegisterRequest(toolgroup_id=name, provider_id=provider), Owner())


@pytest.fixture
def stored(cloud: Cloud, tenant: str) -> None:
    """Store registrations as an older version did."""
    asyncio.run(store_registrations(cloud.store.registrations, tenant))
    cloud.forget()


async def store_registrations(registrations: Registrations, tenant: str) -> None:
    for name in ("crm", "crm/refund", "builtin::rag/knowledge_search", "own", "Crm"):
        await registrations.create(tenant, "tool_group", name, group(name))
    equal = toolgroup_of(ToolGroupRegisterRequest(toolgroup_id="builtin::rag", provider_id="rag-runtime"), Owner())
    await registrations.create(tenant, "tool_group", "builtin::rag", equal)
    for name in ("house", "openai/gpt-4", "gpt-5", "mine"):
        model = model_of(ModelRegisterRequest(model_id=name), "bedrock", "other")
        await registrations.create(tenant, "model", name, model)
    for name, asked in (("guard", "mine"), ("usable", "gpt-5")):
        shield = ShieldRegisterRequest(shield_id=name, provider_id="llama-guard", provider_shield_id=asked)
        await registrations.create(tenant, "shield", name, shield_of(shield, Owner()))


@pytest.fixture
def settings(tmp_path: Path) -> str:
    (tmp_path / "variables.json").write_text(json.dumps(VARIABLES))
    return str(tmp_path / "variables.json")


@pytest.mark.usefixtures("stored")
def test_what_the_configuration_wins_over_is_listed(shell: Shell, settings: str) -> None:
    found = shell.json("registry", "shadowed", "--tenant", shell.tenant, "--settings", settings)

    assert [(each["kind"], each["id"], each["can_be_kept"]) for each in found] == [
        ("model", "gpt-5", True),
        ("model", "house", False),
        ("model", "openai/gpt-4", True),
        ("shield", "guard", False),
        ("toolgroup", "Crm", False),
        ("toolgroup", "builtin::rag/knowledge_search", True),
        ("toolgroup", "crm", True),
        ("toolgroup", "crm/refund", True),
    ]
    text = shell.text("registry", "shadowed", "--tenant", shell.tenant, "--settings", settings)
    assert "a tool of the configured toolgroup 'crm'" in text
    assert "register it again" in text


@pytest.mark.usefixtures("stored")
def test_what_the_operator_keeps_is_marked(shell: Shell, settings: str, cloud: Cloud) -> None:
    command = ["registry", "shadowed", "--tenant", shell.tenant, "--settings", settings]

    listed = shell.json(*command, "--keep", "toolgroup:crm/refund", "--keep", "model:openai/gpt-4")

    assert not {"crm/refund", "openai/gpt-4"} & {each["id"] for each in listed}
    stored = asyncio.run(cloud.store.registrations.read(shell.tenant))
    cloud.forget()

    assert ToolGroup.model_validate_json(stored["tool_group", "crm/refund"]).override is True
    assert ToolGroup.model_validate_json(stored["tool_group", "crm"]).override is None


@pytest.mark.usefixtures("stored")
@pytest.mark.parametrize(
    ("keep", "message"),
    [
        ("model:house", "cannot be kept"),
        ("shield:guard", "cannot be kept"),
        ("toolgroup:own", "not shadowed"),
        ("toolgroup:none", "not found"),
        ("tool:crm", "Write KIND:ID"),
        ("crm", "Write KIND:ID"),
    ],
)
def test_what_cannot_be_kept_is_refused(shell: Shell, settings: str, keep: str, message: str) -> None:
    options = ["--tenant", shell.tenant, "--settings", settings, "--keep", keep]

    code, _, errors = shell.run("registry", "shadowed", *options)

    assert code == 1
    assert message in errors


def test_a_tenant_without_collisions_has_none(shell: Shell) -> None:
    assert "wins over no registration" in shell.text("registry", "shadowed", "--tenant", shell.tenant)


def test_a_file_that_is_no_object_of_variables_is_refused(shell: Shell, tmp_path: Path) -> None:
    for content in (b"[]", b"{", b"\xff"):
        (tmp_path / "bad.json").write_bytes(content)
        code, _, errors = shell.run("registry", "shadowed", "--settings", str(tmp_path / "bad.json"))
        assert (code, "bad.json" in errors) == (1, True)
