import pytest
from infra.local.engine import Engine
from tests.services.cli.test_key_commands import Shell, shell
from tests.store.conftest import Cloud

from stint.domain.ids import new_id, new_name

__all__ = ["shell"]


def test_a_session_is_stopped_listed_and_lifted(shell: Shell) -> None:
    session, of_tenant = new_id(), ("--tenant", shell.tenant)

    stopped = shell.text("stop", "session", session, *of_tenant)
    listed = shell.text("stop", "list", *of_tenant)
    lifted = shell.text("stop", "lift", "session", session, *of_tenant)

    assert f"Stopped session {session}" in stopped
    assert f"stop lift session {session} --tenant {shell.tenant}" in stopped
    assert [line.split()[:2] for line in listed.splitlines()] == [["KIND", "ID"], ["session", session]]
    assert f"Lifted the stop of session {session}" in lifted
    assert "Nothing of the tenant" in shell.text("stop", "list", *of_tenant)


def test_a_key_and_a_whole_tenant_are_stopped(shell: Shell) -> None:
    of_tenant = ("--tenant", shell.tenant)
    key = shell.json("keys", "create", *of_tenant)["id"]

    shell.text("stop", "key", key, *of_tenant)
    shell.text("stop", "tenant", *of_tenant)

    assert {(each["kind"], each["id"]) for each in shell.json("stop", "list", *of_tenant)} == {
        ("key", key),
        ("tenant", shell.tenant),
    }
    assert shell.json("stop", "lift", "tenant", *of_tenant)["kind"] == "tenant"


@pytest.mark.parametrize(("kind", "prefix"), [("response", "resp"), ("conversation", "conv")])
def test_a_response_and_a_conversation_are_stopped(shell: Shell, kind: str, prefix: str) -> None:
    name, of_tenant = new_name(prefix), ("--tenant", shell.tenant)

    assert f"Stopped {kind} {name}" in shell.text("stop", kind, name, *of_tenant)
    assert f"Lifted the stop of {kind} {name}" in shell.text("stop", "lift", kind, name, *of_tenant)


def test_an_unknown_key_and_a_stop_that_does_not_exist_are_errors(shell: Shell) -> None:
    for arguments in (("stop", "key", "0" * 32), ("stop", "lift", "tenant"), ("stop", "session", "talk")):
        code, _, errors = shell.run(*arguments, "--tenant", shell.tenant)
        assert (code, errors.startswith("stint: ")) == (1, True)


def test_a_stop_that_does_not_exist_is_not_logged_as_lifted(shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    code, _, _ = shell.run("stop", "lift", "session", new_id(), "--tenant", shell.tenant)

    assert (code, caplog.messages) == (1, [])


def test_a_deployed_stack_needs_the_name_of_its_table(
    shell: Shell, engine: Engine, cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("STINT_TABLE", "")
    arguments, keys = ("stop", "tenant", "--tenant", shell.tenant), ("--table", engine.outputs["KeysTableName"])

    assert "--data-table" in shell.run(*arguments, options=keys)[2]
    assert shell.run(*arguments, options=(*keys, "--data-table", cloud.table_name))[0] == 0
