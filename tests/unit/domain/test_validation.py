"""Pydantic's findings in the words that callers read."""

from typing import Any

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator

from stint.domain.validation import describe_faults


class Order(BaseModel):
    sizes: list[int] = Field(default=[], min_length=1, max_length=2)
    places: dict[str, int] = Field(default={}, max_length=1)
    name: str = Field(default="", max_length=3)
    kind: str = ""

    @field_validator("kind")
    @classmethod
    def refuse(cls, value: str) -> str:
        raise ValueError("after validation it is still wrong")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"sizes": [1, 2, 3]}, "sizes: List should have at most 2 items, not 3"),
        ({"sizes": []}, "sizes: List should have at least 1 item, not 0"),
        ({"places": {"a": 1, "b": 2}}, "places: Dictionary should have at most 1 item, not 2"),
        ({"name": "abcd"}, "name: String should have at most 3 characters"),
        ({"kind": "a"}, "kind: after validation it is still wrong"),
        (
            {"sizes": ["a"], "name": 1},
            "sizes.0: Input should be a valid integer, unable to parse string as an integer; "
            "name: Input should be a valid string",
        ),
    ],
)
def test_findings_are_told_without_the_steps_of_the_library(value: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Order.model_validate(value)

    assert describe_faults(caught.value) == message
