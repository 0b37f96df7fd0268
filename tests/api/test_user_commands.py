"""The commands of end users, over the API."""

import json
import os
from collections.abc import Sequence

import httpx
import pytest
from tests.api.app_fixture import Served

from stint.cli.command_line import run

USER = "ann/müller"


@pytest.fixture
def conversation(http: httpx.Client) -> str:
    made = http.post("/v1/conversations", json={}, headers={b"x-stint-user": USER.encode()})
    return str(made.json()["id"])


def call(server: Served, capfd: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    """Run a command, and return its output and its errors."""
    capfd.readouterr()
    assert run(["users", *arguments, "--url", server.url], os.environ) == code
    captured = capfd.readouterr()
    return captured.out, captured.err


def lines_of(output: str) -> Sequence[str]:
    """Return the lines of a command's output, without the log lines of the server in the same process."""
    return [line for line in output.splitlines() if not line.startswith(('{"level"', '{"_aws"'))]


def test_an_end_user_is_listed_exported_and_erased(
    server: Served, conversation: str, capfd: pytest.CaptureFixture[str]
) -> None:
    listed, _ = call(server, capfd, "list", USER)
    exported, _ = call(server, capfd, "export", USER)
    erased, _ = call(server, capfd, "erase", USER)
    empty, _ = call(server, capfd, "list", USER)

    assert conversation in listed
    assert [json.loads(line)["kind"] for line in lines_of(exported)] == ["conversation", "end"]
    assert "1 conversation deleted." in lines_of(erased)
    assert "The end user has no objects." in lines_of(empty)


def test_a_server_that_does_not_answer_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["users", "list", USER, "--url", "http://127.0.0.1:9"], os.environ) == 1

    assert "http://127.0.0.1:9 cannot be reached" in capsys.readouterr().err


def test_an_address_that_is_no_url_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["users", "list", USER, "--url", "file:///etc"], os.environ) == 1

    assert "is not a URL" in capsys.readouterr().err
