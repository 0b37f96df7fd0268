"""Calls of tools, as they are written and read back."""

import json
from typing import Any

import pytest

from stint.domain.tools import ToolCall

DEEP: list[dict[str, Any]] = [
    {"items": [{"name": "bolt"}]},
    {"person": {"address": {"street": "Mews"}}},
    {"person": {"tags": ["a"]}},
    {"matrix": [[1, 2], [3, 4]]},
]


def call_with(arguments: dict[str, Any] | str, text: str | None = None) -> ToolCall:
    return ToolCall(call_id="c", tool_name="t", arguments=arguments, arguments_json=text)


@pytest.mark.parametrize("arguments", DEEP, ids=json.dumps)
def test_arguments_deeper_than_the_client_library_reads_are_written_as_text(arguments: dict[str, Any]) -> None:
    text = json.dumps(arguments)

    call = call_with(arguments, text)

    assert json.loads(call.model_dump_json())["arguments"] == text


@pytest.mark.parametrize("arguments", DEEP, ids=json.dumps)
def test_deep_arguments_are_an_object_again_when_they_are_read(arguments: dict[str, Any]) -> None:
    call = call_with(arguments, json.dumps(arguments))

    assert ToolCall.model_validate_json(call.model_dump_json()) == call


def test_deep_arguments_without_their_text_are_written_all_the_same() -> None:
    call = call_with(DEEP[0])

    assert json.loads(json.loads(call.model_dump_json())["arguments"]) == DEEP[0]


@pytest.mark.parametrize(
    "arguments", [{}, {"a": 1, "b": [True, None, "x"], "c": {"d": 1.5, "e": None}}], ids=json.dumps
)
def test_arguments_that_the_client_library_reads_stay_an_object(arguments: dict[str, Any]) -> None:
    call = call_with(arguments, json.dumps(arguments))

    assert json.loads(call.model_dump_json())["arguments"] == arguments


@pytest.mark.parametrize("text", ['{"a": ', "[1]", "", '"x"', '{"a": NaN}'])
def test_arguments_that_are_no_object_stay_the_text_they_are(text: str) -> None:
    call = ToolCall.model_validate_json(call_with(text, text).model_dump_json())

    assert call.arguments == text
