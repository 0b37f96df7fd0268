"""Idempotency keys of responses that are not stored: a tool that may have run does not run again."""

from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest
from tests.api.api_client import assert_error
from tests.api.app_fixture import LEASE, AppFixture
from tests.clock import CLOCK

from stint.domain.errors import ModelOverloaded
from stint.domain.ids import new_id
from stint.models.scripted.model import Scripted
from stint.tools.code_interpreter.runs import RunResult

CODE = {"tools": [{"type": "code_interpreter", "container": {"type": "auto"}}]}
CALL = 'call: code_interpreter {"code": "1"}'


class Counter:
    """A sandbox that counts its runs."""

    def __init__(self) -> None:
        self.runs = 0

    async def run(self, code: str, files: Mapping[str, bytes], /) -> RunResult:
        self.runs += 1
        return RunResult(stdout=f"run {self.runs}")


@pytest.fixture
def counter(app_fixture: AppFixture) -> Iterator[Counter]:
    before, counter = app_fixture.runner, Counter()
    app_fixture.runner = counter
    app_fixture.made.clear()
    yield counter
    app_fixture.runner = before


class Request:
    """A request with an idempotency key."""

    def __init__(self, http: httpx.Client, text: str, **body: Any) -> None:
        self.http, self.key = http, {"idempotency-key": new_id()}
        self.body = {"model": "scripted/demo", "input": text, "store": False} | body

    def send(self) -> httpx.Response:
        answer = self.http.post("/v1/responses", json=self.body, headers=self.key)
        CLOCK.move(LEASE + 1)
        return answer


@pytest.mark.usefixtures("lost")
@pytest.mark.parametrize("stream", [False, True])
def test_a_response_that_called_a_tool_is_not_run_again(http: httpx.Client, counter: Counter, stream: bool) -> None:
    request = Request(http, CALL, stream=stream, **CODE)

    first, *again = [request.send() for _ in range(3)]

    assert first.status_code == 200
    assert "run 1" in first.text
    for each in again:
        assert_error(each, 409, "outcome_unknown")
    assert counter.runs == 1


def test_a_response_that_failed_after_a_call_of_a_tool_is_not_run_again(
    http: httpx.Client, counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Scripted.stream

    async def fail_later(self: Scripted, request: Any) -> Any:
        if counter.runs:
            raise ModelOverloaded("The model is overloaded.")
        async for chunk in stream(self, request):
            yield chunk

    monkeypatch.setattr(Scripted, "stream", fail_later)
    request = Request(http, CALL, **CODE)

    first, *again = [request.send() for _ in range(3)]

    assert (first.status_code, first.json()["error"]["code"]) == (503, "model_overloaded")
    for each in again:
        assert_error(each, 409, "outcome_unknown")
    assert counter.runs == 1


@pytest.mark.usefixtures("lost", "counter")
def test_a_response_that_called_no_tool_is_run_again(http: httpx.Client) -> None:
    request = Request(http, "say: again", **CODE)

    assert ["again" in request.send().text for _ in range(3)] == [True] * 3


@pytest.mark.usefixtures("lost", "counter")
def test_a_stored_response_that_called_a_tool_is_found(http: httpx.Client) -> None:
    request = Request(http, CALL, store=True, **CODE)

    assert len({request.send().json()["id"] for _ in range(3)}) == 1


@pytest.mark.usefixtures("counter")
def test_only_a_call_of_a_tool_costs_a_unit_more(http: httpx.Client, app_fixture: AppFixture) -> None:
    updates = []
    for text in ("say: hi", CALL):
        app_fixture.proxy.forget()
        assert Request(http, text, **CODE).send().status_code == 200
        updates.append(app_fixture.proxy.calls["UpdateItem"])

    assert updates[0] == 1
    assert updates[1] >= 2
