"""The commands of end users, over the API."""

import json
import os
import subprocess
import sys

import httpx
import pytest
from tests.api.app_fixture import Served

from stint.cli.command_line import run

USER = "ann/müller"


@pytest.fixture
def conversation(http: httpx.Client) -> str:
    made = http.post("/v1/conversations", json={}, headers={b"x-stint-user": USER.encode()})
    return str(made.json()["id"])


def call(server: Served, *arguments: str) -> str:
    """Run a command in a process of its own, since the server writes log lines to the output of this one."""
    command = [sys.executable, "-m", "stint.cli", "users", *arguments, "--url", server.url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=60).stdout


def test_an_end_user_is_listed_exported_and_erased(server: Served, conversation: str) -> None:
    listed = call(server, "list", USER)
    exported = call(server, "export", USER)
    erased = call(server, "erase", USER)
    empty = call(server, "list", USER)

    assert conversation in listed
    assert [json.loads(line)["kind"] for line in exported.splitlines()] == ["conversation", "end"]
    assert "1 conversation deleted." in erased.splitlines()
    assert "The end user has no objects." in empty.splitlines()


def test_a_server_that_does_not_answer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["users", "list", USER, "--url", "http://127.0.0.1:9"], os.environ) == 1

    assert "http://127.0.0.1:9 cannot be reached" in capsys.readouterr().err


def test_an_address_that_is_no_url_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["users", "list", USER, "--url", "file:///etc"], os.environ) == 1

    assert "is not a URL" in capsys.readouterr().err
