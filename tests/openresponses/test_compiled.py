"""The compiled components accept exactly the values that jsonschema accepts."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from tests.openresponses.bodies import COMPONENTS
from tests.openresponses.compiled import Compiler
from tests.openresponses.samples import OUTPUT, TEXT, response, stream
from tests.openresponses.schema import Json, compiler, document, event_components, find_error

TOOLS: list[Json] = [
    {"type": "file_search", "vector_store_ids": []},
    {"type": "mcp", "server_label": "a", "authorization": "b"},
]
CHOICE = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}
CITATION = {"type": "url_citation", "start_index": 0, "end_index": 1, "url": "https://example.org", "title": "a"}
WITH_ALL = response(
    output=[OUTPUT[0], OUTPUT[3] | {"content": [TEXT | {"annotations": [CITATION]}]}, OUTPUT[4]],
    tools=[TOOLS[0], {"type": "function", "name": "f", "description": None, "parameters": None, "strict": None}],
    tool_choice=CHOICE,
    reasoning={"effort": "high", "summary": None},
    metadata={"a": "b"},
)
VALUES: list[tuple[str, Json]] = [
    ("ResponseResource", WITH_ALL),
    *((COMPONENTS.get(str(item["type"]), "ItemField"), item) for item in OUTPUT),
    *{event["type"]: (event_components()[event["type"]], event) for event in stream() if "delta" in event}.values(),
    ("Tool", TOOLS[0]),
    ("Tool", TOOLS[1]),
    ("UrlCitationParam", CITATION),
    ("MetadataParam", {"a": "b"}),
    ("MetadataParam", {str(number): "" for number in range(17)}),
    ("MetadataParam", {"a": "b" * 513}),
    ("FunctionToolParam", {"type": "function", "name": "f-1"}),
    ("FunctionToolParam", {"type": "function", "name": "f 1"}),
]
OTHERS: tuple[Any, ...] = (None, True, 1, -1, 1.0, 1.5, "", "x", "completed", [], [1], {}, {"type": "function"})


def changed(value: Any) -> Iterator[Any]:
    """Yield copies of a value in which a part is missing or another one."""
    yield from OTHERS
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        rest = copy.copy(value)
        del rest[key]
        yield rest
        for other in changed(part):
            copied = copy.copy(value)
            copied[key] = other
            yield copied


@pytest.mark.parametrize(("component", "value"), VALUES, ids=lambda each: each if isinstance(each, str) else "")
def test_both_accept_and_refuse_the_same_values(component: str, value: Json) -> None:
    accepts = compiler().component(component)
    values = [value, *changed(value)]
    step = len(values) // 150 + 1
    for each in values[::step]:
        assert accepts(each) == (find_error(component, each) is None), each


def test_every_component_is_compiled() -> None:
    for name in document()["components"]["schemas"]:
        compiler().component(name)


@pytest.mark.parametrize("schema", [{"const": 1}, {"enum": [1]}, {"properties": {}, "additionalProperties": False}])
def test_a_keyword_that_is_not_compiled_is_an_error(schema: Json) -> None:
    with pytest.raises((AttributeError, NotImplementedError)):
        Compiler({"A": schema}).component("A")
