"""Statements of docs/responses.md about OpenAI's API are true and complete."""

import re
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from openai.types.chat import completion_create_params
from openai.types.responses import (
    ResponseIncludable,
    ResponseInputItem,
    ResponseStreamEvent,
    response_create_params,
    tool_param,
)
from pydantic import BaseModel

from stint.domain.fields import UnsupportedField
from stint.domain.openai.chat import ChatCompletionRequest
from stint.domain.openai.input_items import KNOWN_ITEMS, REFUSED_ITEMS
from stint.domain.openai.parts import INPUT_PARTS, OUTPUT_PARTS, REFUSED_PARTS
from stint.domain.openai.response_events import ResponseEvent
from stint.domain.openai.response_options import REFUSED_INCLUDES, Include
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_tools import REFUSED_TOOLS, TOOL_TYPES

DOCS = (Path(__file__).parents[2] / "docs" / "responses.md").read_text()
ACCEPTED = ("works", "echoed", "accepted")


def table(heading: str) -> dict[str, str]:
    """Read the table under a heading of its own: what is said of each name in its first column."""
    [rows] = re.findall(
        rf"^\| {re.escape(heading)} \| here \|.*\n\|---\|---\|---\|\n((?:\|.*\n?)*)", DOCS, re.MULTILINE
    )
    return read_rows(rows)


def read_rows(rows: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in rows.splitlines():
        first, here, _ = (cell.strip() for cell in row.strip("|").split("|", 2))
        found |= dict.fromkeys(re.findall(r"`([^`]+)`", first), here)
    return found


def section(title: str) -> dict[str, str]:
    """Read the first table of a section."""
    [text] = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", DOCS, re.MULTILINE | re.DOTALL)
    return read_rows("\n".join(re.split(r"\n\n", text[text.index("|---") :])[0].splitlines()[1:]))


def test_the_versions_of_openai_are_the_one_that_the_tests_run() -> None:
    named = re.findall(r"`openai` (\d+\.\d+)", DOCS)

    assert len(named) == 2
    assert {*named} == {version("openai").rpartition(".")[0]}


def types_of(classes: Iterable[Any]) -> set[str]:
    """Collect the `type` literals of classes."""
    found: set[str] = set()
    for each in classes:
        is_model = isinstance(each, type) and issubclass(each, BaseModel)
        annotation = each.model_fields["type"].annotation if is_model else get_type_hints(each)["type"]
        found |= set(re.findall(r"'([a-z_0-9.]+)'", str(annotation)))
    return found


def fields_of(kind: type[BaseModel]) -> dict[str, bool]:
    """Return for each field of a request whether it is supported."""
    return {
        name: not any(isinstance(each, UnsupportedField) for each in field.metadata)
        for name, field in kind.model_fields.items()
    }


@pytest.mark.parametrize(
    ("title", "params", "kind"),
    [
        ("Fields of a request", response_create_params.ResponseCreateParamsStreaming, CreateResponse),
        ("Chat completions", completion_create_params.CompletionCreateParamsStreaming, ChatCompletionRequest),
    ],
    ids=["responses", "chat"],
)
def test_every_field_of_a_request_is_told_as_it_is(title: str, params: Any, kind: type[BaseModel]) -> None:
    said = section(title)

    assert params.__required_keys__ | params.__optional_keys__ <= set(said)
    assert set(said) == set(kind.model_fields)
    assert {name: here in ACCEPTED for name, here in said.items()} == fields_of(kind)


def test_every_item_type_is_told_as_it_is() -> None:
    said = section("Items")

    assert types_of(get_args(get_args(ResponseInputItem)[0])) <= set(said)
    assert said == dict.fromkeys(KNOWN_ITEMS.known, "works") | dict.fromkeys(REFUSED_ITEMS, "refused")


def test_every_tool_type_is_told_as_it_is() -> None:
    said = section("Tools")

    assert types_of(get_args(tool_param.ToolParam)) <= set(said)
    honoured = dict.fromkeys(TOOL_TYPES, "works")
    assert said == honoured | dict.fromkeys(REFUSED_TOOLS, "refused")


def test_every_event_is_told_as_it_is() -> None:
    said = section("Stream")

    known = types_of(get_args(get_args(ResponseStreamEvent)[0]))
    sent = types_of(get_args(get_args(ResponseEvent)[0]))
    assert set(said) == known
    assert {name for name, here in said.items() if here == "works"} == sent


def test_every_includable_is_told_as_it_is() -> None:
    said = table("`include`")

    assert set(said) == set(get_args(ResponseIncludable))
    works = dict.fromkeys(get_args(get_args(Include)[0]), "works")
    assert said == works | dict.fromkeys(REFUSED_INCLUDES, "refused")


def test_every_content_part_is_told_as_it_is() -> None:
    said = table("content part")

    assert {name for name, here in said.items() if here == "works"} == {*INPUT_PARTS, *OUTPUT_PARTS}
    assert {name for name, here in said.items() if here == "refused"} <= set(REFUSED_PARTS)
