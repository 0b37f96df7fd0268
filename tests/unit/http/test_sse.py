import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.domain.errors import ModelError
from stint.domain.llama_stack.events import TurnFailed, TurnStart
from stint.domain.llama_stack.turns import Turn, TurnStatus
from stint.domain.run_events import StepProgress, TextDelta
from stint.domain.schema import now
from stint.domain.steps import CompletionMessage
from stint.http.routes.turns import encode_event


def progress(text: str) -> StepProgress:
    return StepProgress(step_type="inference", step_id="s", delta=TextDelta(text=text))


def test_an_event_is_one_data_line_and_an_empty_line() -> None:
    assert (
        encode_event(TurnStart(turn_id="t"))
        == b'data: {"event":{"payload":{"event_type":"turn_start","turn_id":"t"}}}\n\n'
    )


@given(st.text())
def test_any_text_stays_on_its_line_and_comes_back(text: str) -> None:
    sent = encode_event(progress(text)).decode()

    assert len(sent.splitlines()) == 2
    assert json.loads(sent.removeprefix("data: "))["event"]["payload"]["delta"]["text"] == text


@pytest.mark.parametrize("message", ["plain", "one\u2028two\nthree", 'quotes " and \\'])
def test_a_failure_is_an_error_and_nothing_else(message: str) -> None:
    turn = Turn(
        turn_id="t",
        session_id="s",
        input_messages=[],
        steps=[],
        output_message=CompletionMessage(),
        started_at=now(),
        status=TurnStatus.failed,
    )
    error = ModelError(message)
    error.turn_id = "t"

    sent = encode_event(TurnFailed(error, turn)).decode()

    assert len(sent.splitlines()) == 2
    assert json.loads(sent.removeprefix("data: ")) == {
        "error": {"message": message, "type": "model_error", "code": "model_error", "param": "", "turn_id": "t"}
    }
