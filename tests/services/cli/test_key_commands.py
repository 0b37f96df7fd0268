import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from infra.local.engine import ROOT, Engine, RunningEngine
from infra.local.state import State

from stint.cli.command_line import run

KEY = re.compile(r"stk_([0-9a-f]{32})_[0-9a-f]{64}")


class Shell:
    """A shell beside a running `make run`, whose state folder is `state`."""

    def __init__(self, state: Path, tenant: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.state, self.tenant, self._capsys = state, tenant, capsys

    def run(self, *arguments: str, options: Sequence[str] | None = None) -> tuple[int, str, str]:
        """Return the exit code, the output and the errors of a command."""
        where = ("--state", str(self.state)) if options is None else options
        code = run([*arguments, *where], os.environ)
        done = self._capsys.readouterr()
        return code, done.out, done.err

    def text(self, *arguments: str) -> str:
        """Return the output of a command that succeeds."""
        code, output, errors = self.run(*arguments)
        assert (code, errors) == (0, "")
        return output

    def json(self, *arguments: str) -> Any:
        return json.loads(self.text(*arguments, "--json"))


@pytest.fixture
def shell(
    engine: Engine, tmp_path: Path, tenant: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    for name in (*engine.running.variables(), "STINT_KEYS_TABLE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(name, "")
    with State(tmp_path) as state:
        state.publish("http://127.0.0.1:8321", engine.running)
        lock = (tmp_path / "lock").read_text()
    (tmp_path / "lock").write_text(lock)
    return Shell(tmp_path, tenant, capsys)


def test_a_key_is_shown_once_and_listed_without_its_secret(shell: Shell) -> None:
    created = shell.text("keys", "create", "--tenant", shell.tenant, "--name", "billing")

    (key_id,) = KEY.findall(created)
    listed = shell.text("keys", "list", "--tenant", shell.tenant)
    assert "cannot be shown again" in created
    assert created.split()[0][-64:] not in listed
    assert [line.split()[:2] for line in listed.splitlines()] == [["ID", "NAME"], [key_id, "billing"]]
    assert listed.splitlines()[1].split()[-1] == "active"


def test_a_key_has_the_rights_limits_and_lifetime_of_the_options(shell: Shell) -> None:
    options = ["--tenant", shell.tenant, "--subject", "bot", "--scope", "use", "--scope", "users:act"]
    options += ["--model", "openai/*", "--requests-per-minute", "5", "--dollars-per-month", "2.5"]

    key = shell.json("keys", "create", *options, "--expires-in-days", "2")

    assert KEY.fullmatch(key["key"])
    assert (key["tenant"], key["subject"], key["scopes"]) == (shell.tenant, "bot", ["use", "users:act"])
    assert key["models"] == ["openai/*"]
    assert {name: value for name, value in key["budgets"].items() if value} == {
        "requests_per_minute": 5,
        "dollars_per_month": 2.5,
    }
    assert key["expires_at"] - key["created_at"] in (2 * 86_400 - 1, 2 * 86_400, 2 * 86_400 + 1)


def test_a_revoked_key_works_at_most_until_the_authorizers_cache_ends(shell: Shell) -> None:
    key_id = shell.json("keys", "create", "--tenant", shell.tenant)["id"]

    output = shell.text("keys", "revoke", key_id)

    assert f"Revoked {key_id} of the tenant {shell.tenant}." in output
    assert "for up to 60 seconds" in output
    assert shell.json("keys", "list", "--tenant", shell.tenant)[0]["revoked_at"] <= time.time()
    assert shell.text("keys", "list", "--tenant", shell.tenant).splitlines()[1].endswith("revoked")


def test_a_rotated_key_has_another_secret_and_the_same_id(shell: Shell) -> None:
    key = shell.json("keys", "create", "--tenant", shell.tenant)

    rotated = shell.json("keys", "rotate", key["id"], "--overlap-seconds", "60")

    assert rotated["id"] == key["id"]
    assert rotated["key"] != key["key"]
    assert rotated["previous_expires_at"] - rotated["rotated_at"] == 60


def test_a_tenant_without_keys_has_none(shell: Shell) -> None:
    listed = shell.text("keys", "list", "--tenant", shell.tenant)

    assert listed == f"The tenant {shell.tenant} has no keys. For those of all tenants, use --all-tenants.\n"


def test_keys_of_all_tenants_are_listed_with_their_tenants(shell: Shell) -> None:
    tenants = [f"{shell.tenant}{end}" for end in "abc"]
    ids = {shell.json("keys", "create", "--tenant", tenant)["id"]: tenant for tenant in tenants}

    listed = shell.text("keys", "list", "--all-tenants")
    head, *rows = [line.split() for line in listed.splitlines()]

    assert head[:2] == ["TENANT", "ID"]
    assert {row[1]: row[0] for row in rows if row[1] in ids} == ids
    assert ids.items() <= {key["id"]: key["tenant"] for key in shell.json("keys", "list", "--all-tenants")}.items()


def test_pages_of_all_tenants_have_each_key_once(shell: Shell) -> None:
    ids = [shell.json("keys", "create", "--tenant", f"{shell.tenant}{end}")["id"] for end in "abcde"]
    every = [key["id"] for key in shell.json("keys", "list", "--all-tenants")]

    paged = read_pages(shell, "--all-tenants", "--limit", "2")

    assert sorted(paged) == sorted(every)
    assert set(ids) <= set(paged)


def test_pages_of_a_tenant_have_each_key_once_the_newest_first(shell: Shell) -> None:
    ids = [shell.json("keys", "create", "--tenant", shell.tenant)["id"] for _ in range(3)]

    assert read_pages(shell, "--tenant", shell.tenant, "--limit", "2") == ids[::-1]


def read_pages(shell: Shell, *options: str) -> list[str]:
    """Return the ids of all pages of a list."""
    found: list[str] = []
    after: tuple[str, ...] = ()
    while True:
        code, output, errors = shell.run("keys", "list", *options, *after, "--json")
        found += [key["id"] for key in json.loads(output)]
        more = re.search(r"--after ([0-9a-f]{32})", errors)
        assert code == 0
        if more is None:
            return found
        after = ("--after", more[1])


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("create", "--tenant", "Not A Tenant"), "'Not A Tenant' is not a tenant's name"),
        (("create", "--requests-per-minute", "0"), "budgets.requests_per_minute: Input should be greater than"),
        (("create", "--dollars-per-month", "inf"), "budgets.dollars_per_month: Input should be less than or equal"),
        (("create", "--dollars-per-month", "1e308"), "budgets.dollars_per_month: Input should be less than or equal"),
        (("create", "--requests-per-minute", "1" + "0" * 40), "budgets.requests_per_minute: Input should be less than"),
        (("create", "--expires-in-days", "-1"), "expires_at is in the past"),
        (("create", "--expires-in-days", "inf"), "expires_at: Input should be a finite number"),
        (("create", "--expires-in-days", "nan"), "expires_at: Input should be a finite number"),
        (("revoke", "0" * 32), f"API key '{'0' * 32}' not found"),
        (("rotate", "stk_x"), "not found"),
        (("rotate", "0" * 32, "--overlap-seconds", "-1"), "overlap_seconds: Input should be greater than"),
        (("list", "--tenant", "a#b"), "'a#b' is not a tenant's name"),
        (("list", "--all-tenants", "--after", "a#b"), "API key 'a#b' not found"),
        (("list", "--limit", "0"), "--limit must be from 1 to 1000"),
        (("list", "--all-tenants", "--limit", "1001"), "--limit must be from 1 to 1000"),
    ],
)
def test_a_mistake_is_one_line_that_names_it(shell: Shell, arguments: tuple[str, ...], problem: str) -> None:
    code, output, errors = shell.run("keys", *arguments)

    assert (code, output) == (1, "")
    assert errors.startswith("stint: ")
    assert errors.count("\n") == 1
    assert problem in errors


def test_without_a_table_the_options_that_name_one_are_listed(shell: Shell) -> None:
    code, _, errors = shell.run("keys", "list", options=())

    assert code == 1
    assert "--table" in errors
    assert "--state" in errors


def test_a_state_folder_that_nothing_uses_is_an_error(shell: Shell, tmp_path: Path) -> None:
    code, _, errors = shell.run("keys", "list", options=("--state", str(tmp_path / "nothing")))

    assert code == 1
    assert "Start `make run`" in errors


def test_a_deployed_table_is_called_with_the_shells_credentials(
    shell: Shell, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)

    code, output, _ = shell.run(
        "keys", "list", "--tenant", shell.tenant, options=("--table", engine.outputs["KeysTableName"])
    )

    assert (code, output.partition(".")[0]) == (0, f"The tenant {shell.tenant} has no keys")


def test_an_unreachable_table_is_one_line(shell: Shell) -> None:
    nowhere = RunningEngine("http://127.0.0.1:9", "us-east-1", {}).environment()
    os.environ.update(nowhere)

    code, _, errors = shell.run("keys", "list", options=("--table", "keys"))

    assert code == 1
    assert errors.startswith("stint: The database does not respond. Try again. The region is us-east-1: is it that of")
    assert len(errors.splitlines()) == 1


def test_missing_credentials_are_named(
    shell: Shell, engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)

    code, _, errors = shell.run("keys", "list", options=("--table", "keys"))

    assert (code, errors) == (1, "stint: There are no AWS credentials. Set AWS_ACCESS_KEY_ID, or a profile.\n")


@pytest.mark.parametrize("options", [("--table", "keys"), ("--stack", "shop")])
@pytest.mark.parametrize("region", [None, "us-east-1"])
def test_an_unknown_profile_is_named(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: tuple[str, str], region: str | None
) -> None:
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    if region:
        monkeypatch.setenv("AWS_REGION", region)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_PROFILE", "nope")

    code, _, errors = shell.run("keys", "list", options=options)

    assert (code, errors.count("\n")) == (1, 1)
    assert "The config profile (nope) could not be found" in errors


def test_an_error_has_nothing_that_a_terminal_obeys(shell: Shell) -> None:
    code, _, errors = shell.run("keys", "revoke", "a\x1b[31m\x9b31m\u202e", options=("--state", str(shell.state)))

    assert code == 1
    assert errors.rstrip("\n").isprintable()


def test_a_table_of_another_region_is_named(shell: Shell, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in engine.environment().items():
        monkeypatch.setenv(name, value)

    code, _, errors = shell.run("keys", "list", options=("--table", "elsewhere"))

    assert code == 1
    assert errors.startswith("stint: There is no such table in the region us-east-1. Use --table ")


def test_it_ends_quietly_when_the_reader_of_its_output_has_ended(shell: Shell) -> None:
    command = [sys.executable, "-m", "stint.cli", "keys", "list", "--json", "--state", str(shell.state)]
    reader, writer = os.pipe()
    os.close(reader)

    with os.fdopen(writer, "wb") as output:
        environment = os.environ | {"PYTHONPATH": "layers/core"}
        done = subprocess.run(command, env=environment, cwd=ROOT, stdout=output, stderr=subprocess.PIPE, text=True)

    assert (done.returncode, done.stderr) == (0, "")


def test_it_is_a_program() -> None:
    command = [sys.executable, "-m", "stint.cli", "keys", "--help"]

    done = subprocess.run(command, env={"PYTHONPATH": "layers/core"}, cwd=ROOT, capture_output=True, text=True)

    assert done.returncode == 0
    assert all(command in done.stdout for command in ("create", "list", "revoke", "rotate"))
