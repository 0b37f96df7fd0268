import io
import json
import logging
import re
import sys
import time
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from stint.caller import acting_as
from stint.domain.errors import ModelError
from stint.domain.inference import Usage
from stint.domain.known_secrets import remember
from stint.domain.llama_stack.events import Event, TurnAwaitingInput, TurnComplete, TurnStart
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.principals import Principal
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage
from stint.embedded_metrics import namespace
from stint.log_keys import add_log_keys, begin_log_keys, log_keys
from stint.observability import Observation, make_logger, serialize, write_request_line
from stint.request_totals import count_dollars, count_model_error
from stint.services.turns.turn_handles import number_events


async def play(*events: Event) -> AsyncGenerator[Event, None]:
    for event in events:
        yield event


def turn(tokens: int) -> Turn:
    usage = Usage(input_tokens=tokens, output_tokens=1, total_tokens=tokens + 1)
    return Turn(
        turn_id="t",
        session_id="s",
        input_messages=[],
        steps=[],
        output_message=CompletionMessage(),
        started_at=now(),
        status=TurnStatus.completed,
        usage=usage,
    )


async def measure(used: Usage | None, *events: Event) -> dict[str, Any]:
    observation = Observation("r", "turns")
    followed = [each.event async for each in number_events(play(*events), 0, observation, used)]
    assert followed == list(events)
    return observation.metrics.to_document({})


async def test_a_turn_that_pauses_is_one_turn_and_its_tokens_count_once() -> None:
    paused = turn(4)

    before = await measure(None, TurnStart(turn_id="t"), TurnAwaitingInput(turn=paused))
    after = await measure(paused.usage, TurnComplete(turn=turn(9)))

    assert (before["Turns"], before["InputTokens"]) == ([1.0], [4.0])
    assert "Turns" not in after
    assert after["InputTokens"] == [5.0]
    assert "TimeToFirstEvent" in after


def test_the_figures_of_a_turn_name_whose_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    observation = Observation("r", "turns")
    add_log_keys(agent_name="shop", agent_id="a", session_id="s", turn_id=None)

    observation.finish_request("POST", "/turn", 200)

    [figures] = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if "_aws" in line]
    assert (figures["request_id"], figures["agent_name"], figures["agent_id"]) == ("r", "shop", "a")
    assert "turn_id" not in figures
    assert figures["_aws"]["CloudWatchMetrics"][0]["Dimensions"] == [["service"]]
    assert log_keys() == {}


class Writes(list[str]):
    """Standard output that keeps each write apart."""

    def write(self, text: str) -> int:
        self.append(text)
        return len(text)


def test_the_metrics_of_a_request_are_one_write_that_no_other_thread_can_divide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", writes := Writes())

    Observation("r", "turns").finish_request("POST", "/turn", 200)

    [line] = [text for text in writes if '"_aws"' in text]
    assert line.endswith("}\n")


def test_metrics_that_powertools_has_turned_off_are_not_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")

    Observation("r", "turns").finish_request("POST", "/turn", 200)

    assert '"_aws"' not in capsys.readouterr().out


@pytest.mark.parametrize(("variable", "expected"), [("Stint/shop", "Stint/shop"), ("", "Stint")])
def test_the_metrics_of_each_stack_have_a_namespace(
    monkeypatch: pytest.MonkeyPatch, variable: str, expected: str
) -> None:
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", variable)

    assert namespace.__wrapped__() == expected


async def test_log_lines_hold_none_of_the_credentials_of_their_request(caplog: pytest.LogCaptureFixture) -> None:
    Observation("r", "turns")
    remember(['sk-"quoted"-key'])

    line = serialize({"message": 'sk-"quoted"-key', "exception": "ValueError: /?key=sk-%22quoted%22-key", "n": 1})
    Observation("r2", "turns")

    assert json.loads(line) == {"message": "***", "exception": "ValueError: /?key=***", "n": 1}
    assert "quoted" in serialize({"message": 'sk-"quoted"-key'})


@pytest.mark.parametrize("trace", [None, "Root=1-1f-2e;Parent=3d;Sampled=1"], ids=["no trace", "traced"])
@pytest.mark.parametrize("keys", [{}, {"xray_trace_id": "1-4c-5b", "agent_name": 'é"'}], ids=["no keys", "keys"])
def test_the_line_of_a_request_is_that_of_powertools(
    monkeypatch: pytest.MonkeyPatch, written: io.StringIO, keys: dict[str, str], trace: str | None
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1795866213.0078)
    monkeypatch.setattr(time, "time_ns", lambda: 1795866213007800000)
    monkeypatch.setenv("_X_AMZN_TRACE_ID", trace) if trace else monkeypatch.delenv("_X_AMZN_TRACE_ID", raising=False)
    fields = {"method": "POST", "route": "/v1/agents/{agent_id}", "status": 200, "duration_ms": 7.5}
    begin_log_keys(request_id="r", cold_start=True, **keys)
    remember(["POST-is-secret", "/v1/agents"])

    write_request_line(fields)
    make_logger().info("Request", extra=fields)

    lines = written.getvalue().splitlines()
    assert json.loads(lines[0])["location"].startswith("finish_request:")
    ours, theirs = (re.sub(r'"location":"\w+:[0-9]+"', '"location":""', line) for line in lines)
    assert json.loads(ours) == json.loads(theirs)
    assert sorted(ours) == sorted(theirs)  # Powertools has the trace at another place if the environment has none


def test_the_line_of_a_request_has_the_level_info(caplog: pytest.LogCaptureFixture, written: io.StringIO) -> None:
    with caplog.at_level(logging.WARNING, "stint"):
        write_request_line({"status": 200})

    assert written.getvalue() == ""


def test_log_lines_of_work_for_a_caller_name_the_caller() -> None:
    observation = Observation("r", "worker")

    with acting_as(Principal("acme", "ann", frozenset({"use"}), "k1")):
        keys = dict(log_keys())
    observation.finish_request("TASK", "ingest", 200)

    assert (keys["tenant"], keys["subject"], keys["key_id"]) == ("acme", "ann", "k1")


def test_failed_model_calls_and_the_cost_of_runs_are_metrics_of_a_request(
    capfd: pytest.CaptureFixture[str],
) -> None:
    observation = Observation("r", "worker")
    for dollars in (0.26, 0.01):
        count_dollars(dollars)
    count_model_error(ModelError("down"))

    observation.finish_request("TASK", "response", 200)
    Observation("r2", "worker").finish_request("TASK", "response", 200)

    written = [json.loads(line) for line in capfd.readouterr().out.splitlines() if '"_aws"' in line]
    assert (written[0]["Dollars"], written[0]["ModelErrors"]) == ([0.27], [1.0])
    assert not {"Dollars", "ModelErrors"} & written[1].keys()
