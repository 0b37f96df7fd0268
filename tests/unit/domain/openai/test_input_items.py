from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError
from tests.openresponses.bodies import check_item
from tests.unit.domain.openai.request_bodies import INPUT_ITEMS, REFERENCES, Json

from stint.domain.openai.input_items import REFUSED_ITEMS, Input
from stint.domain.openai.items import Item, Message, name_items

INPUT: TypeAdapter[list[Any]] = TypeAdapter(Input)
STORED: TypeAdapter[list[Item]] = TypeAdapter(list[Item])


def problems_of(items: object) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        INPUT.validate_python(items)
    return [f"{'.'.join(str(each) for each in problem['loc'])}: {problem['msg']}" for problem in caught.value.errors()]


@pytest.mark.parametrize("index", range(len(INPUT_ITEMS)))
def test_an_item_that_clients_send_is_named_stored_and_shown(index: int) -> None:
    items = name_items(INPUT.validate_python([INPUT_ITEMS[index]]))
    stored = STORED.dump_json(items)

    assert STORED.validate_json(stored) == items
    for shown in STORED.dump_python(items, mode="json"):
        check_item(shown)


@pytest.mark.parametrize("index", range(len(REFERENCES)))
def test_a_reference_needs_no_type(index: int) -> None:
    [reference] = INPUT.validate_python([REFERENCES[index]])

    assert (reference.type, reference.id) == ("item_reference", "msg_1")


def test_a_string_is_a_message_of_the_user() -> None:
    assert INPUT.validate_python("Hi.") == INPUT.validate_python([{"role": "user", "content": "Hi."}])


def test_the_words_of_an_assistant_are_output() -> None:
    [message] = INPUT.validate_python([{"role": "assistant", "content": "Hello."}])

    assert isinstance(message, Message)
    assert [part.type for part in message.content] == ["output_text"]


def test_what_has_no_value_is_left_out_where_clients_refuse_null() -> None:
    items = name_items(INPUT.validate_python([INPUT_ITEMS[0], {"type": "reasoning", "summary": []}]))

    [message, reasoning] = STORED.dump_python(items, mode="json")

    assert "phase" not in message
    assert set(reasoning) == {"type", "id", "summary"}


@pytest.mark.parametrize("kind", sorted(REFUSED_ITEMS))
def test_an_item_of_a_tool_that_is_not_offered_is_refused_by_its_type_and_place(kind: str) -> None:
    [problem] = problems_of([{"role": "user", "content": "Hi."}, {"type": kind, "id": "x"}])

    assert problem == f"1: The item type {kind!r} is not supported: {REFUSED_ITEMS[kind]}."


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"type": "acme:note", "id": "x"}, "0: The item type 'acme:note' is not supported: the supported types are"),
        ({"text": "Hi."}, "0: The item needs a type. Set it to one of: message"),
        ({"type": 5}, "0: The item needs a type"),
        ("Hi.", "0: Input should be a valid dictionary"),
        ({"role": "tool", "content": "4"}, "0.message.role: Input should be 'user'"),
        ({"role": "user"}, "0.message.content: Field required"),
        ({"role": "user", "content": [{"type": "refusal", "refusal": "No."}]}, "0.message.content: Part 0 is refusal"),
        ({"role": "system", "content": [{"type": "input_image", "image_url": "x"}]}, "0.message.content: Part 0 is"),
        (
            {"role": "user", "content": [{"type": "input_audio"}]},
            "The content part type 'input_audio' is not supported",
        ),
        ({"role": "user", "content": [{"text": "Hi."}]}, "0.message.content.0: The content part needs a type"),
        (
            {"role": "user", "content": [{"type": "input_image", "file_id": "file_1", "image_url": "https://a"}]},
            "input_image: An image needs either image_url or file_id, not both.",
        ),
        (
            {"role": "user", "content": [{"type": "input_file", "file_id": "file_1", "file_data": "aaaa"}]},
            "input_file: A file needs exactly one of",
        ),
        (
            {"role": "user", "content": [{"type": "input_file"}]},
            "A file needs exactly one of file_data, file_url and file_id",
        ),
        (
            {"type": "function_call", "call_id": "", "name": "f", "arguments": ""},
            "call_id: String should have at least",
        ),
        (
            {"type": "function_call", "call_id": "a" * 65, "name": "f", "arguments": ""},
            "call_id: String should have at",
        ),
        (
            {"type": "function_call", "call_id": "a", "name": "f g", "arguments": ""},
            "name: String should match pattern",
        ),
        (
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "", "namespace": "n"},
            "namespace: Tool namespaces",
        ),
        ({"type": "function_call_output", "output": "4"}, "0.function_call_output.call_id: Field required"),
        ({"type": "function_call_output", "call_id": "a", "output": 4}, "output.parts: Input should be a valid list"),
        (
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_video", "video_url": "x"}]},
            "output.parts.0: The content part type 'input_video' is not supported",
        ),
        (
            {"type": "web_search_call", "action": {"type": "open_page", "url": "x"}},
            "web_search_call.action.type: Input should be 'search'",
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "output_text", "text": "a", "annotations": [{"type": "file_path"}]}],
            },
            "annotations.0: The annotation type 'file_path' is not supported",
        ),
    ],
)
def test_an_item_that_cannot_be_taken_is_refused_by_its_place_and_field(item: Json, expected: str) -> None:
    assert expected in problems_of([item])[0]


def test_an_input_is_a_string_or_a_list() -> None:
    assert problems_of({"role": "user"}) == [": The input must be a string or a list of items."]
