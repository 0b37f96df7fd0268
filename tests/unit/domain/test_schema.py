from datetime import UTC, datetime, timedelta, timezone

import pytest
from pydantic import ValidationError

from stint.domain.llama_stack.agents import AgentConfig
from stint.domain.paging import carried_size
from stint.domain.schema import Schema, Timestamp, format_timestamp


class Moment(Schema):
    at: Timestamp


def test_timestamps_are_utc_with_microseconds_and_z() -> None:
    here = datetime(2026, 11, 20, 20, 1, 20, tzinfo=timezone(timedelta(hours=2)))

    assert format_timestamp(here) == "2026-11-20T18:01:20.000000Z"
    written = Moment(at=here).model_dump_json()
    assert written == '{"at":"2026-11-20T18:01:20.000000Z"}'
    assert Moment.model_validate_json(written).at == here.astimezone(UTC)


def test_a_null_is_a_default_only_where_null_has_no_meaning() -> None:
    config = AgentConfig.model_validate({"model": "m", "instructions": "", "max_infer_iters": None, "name": None})

    assert (config.max_infer_iters, config.name) == (10, None)
    with pytest.raises(ValidationError, match="instructions"):
        AgentConfig.model_validate({"model": "m", "instructions": None})


@pytest.mark.parametrize(("text", "size"), [("abc", 5), ('"', 4), ("\\", 4), ("é", 8), ("🙂", 14), ("\n", 4)])
def test_a_text_is_measured_as_json_in_ascii(text: str, size: int) -> None:
    assert carried_size(text) == size
