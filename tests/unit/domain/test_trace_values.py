"""The values of spans in OTLP/JSON, and the version that traces name."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from stint.domain.traces import VERSION, make_attributes

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a", {"stringValue": "a"}),
        ("", {"stringValue": ""}),
        (0, {"intValue": "0"}),
        (1 << 60, {"intValue": "1152921504606846976"}),
        (0.0, {"doubleValue": 0.0}),
        (False, {"boolValue": False}),
        (["a", "b"], {"arrayValue": {"values": [{"stringValue": "a"}, {"stringValue": "b"}]}}),
    ],
)
def test_a_value_is_written_as_its_kind(value: Any, written: dict[str, Any]) -> None:
    [attribute] = make_attributes({"k": value, "none": None})

    assert json.loads(attribute.to_json()) == {"key": "k", "value": written}


def test_traces_name_the_version_of_the_project() -> None:
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == VERSION
