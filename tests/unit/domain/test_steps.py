from typing import Any

import pytest
from pydantic import ValidationError

from stint.domain.steps import StepResponse

COMMON = {
    "turn_id": "t",
    "step_id": "s",
    "started_at": "2026-11-20T18:01:20.974271Z",
    "completed_at": None,
}
CALL = {"call_id": "c", "tool_name": "w", "arguments": {"a": [1, None]}, "arguments_json": '{"a": [1, null]}'}
ANSWER = {"role": "assistant", "content": "Hi", "stop_reason": "end_of_turn", "tool_calls": [CALL]}
RESPONSE = {"call_id": "c", "tool_name": "w", "content": [{"type": "text", "text": "x"}], "metadata": {"k": None}}
VIOLATION = {"violation_level": "error", "user_message": None, "metadata": {"violation_type": "S9"}}
STEPS: list[dict[str, Any]] = [
    COMMON | {"step_type": "inference", "model_response": ANSWER},
    COMMON | {"step_type": "tool_execution", "tool_calls": [CALL], "tool_responses": [RESPONSE]},
    COMMON | {"step_type": "shield_call", "violation": VIOLATION},
    COMMON | {"step_type": "shield_call", "violation": None},
    COMMON | {"step_type": "memory_retrieval", "vector_db_ids": "v", "inserted_context": "found"},
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step["step_type"])
def test_every_kind_of_step_is_written_as_it_was_read_in_the_same_order(step: dict[str, Any]) -> None:
    written = StepResponse.model_validate({"step": step}).model_dump(mode="json")["step"]

    assert written == step
    assert list(written) == list(step)


def test_there_is_no_other_kind() -> None:
    with pytest.raises(ValidationError, match="dance"):
        StepResponse.model_validate({"step": COMMON | {"step_type": "dance"}})
