from typing import Any

import pytest
from tests.script_model import words_of
from tests.unit.services.responses.item_fixture import (
    INPUT,
    asks,
    call,
    encode,
    mcp_call,
    messages,
    output,
    read,
    says,
    shape,
)

from stint.domain.content import DetailedImage, ImageContentItem, TextContentItem
from stint.domain.errors import InvalidRequest
from stint.domain.inference import AssistantAnswer, Reasoning, UserInput
from stint.domain.openai.opaque import CompactedContext
from stint.domain.stored_messages import SUMMARY
from stint.domain.tools import DENIED
from stint.loop.transcript import NO_RESULT
from stint.services.responses.search_items import NO_RESULTS

ASKS = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "add", "arguments": '{"a": 1}'}
AGREES = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
RAN = {
    "type": "mcp_call",
    "id": "mcp_9",
    "server_label": "s",
    "name": "add",
    "arguments": '{"a": 1}',
    "output": "3",
    "approval_request_id": "mcpr_1",
}


def test_messages_of_every_role_keep_their_order() -> None:
    said = messages(
        {"role": "developer", "content": "Be brief."}, asks("one"), says("two"), {"role": "system", "content": "three"}
    )

    assert shape(said) == ["system Be brief.", "user one", "answer two", "system three"]


def test_reasoning_text_and_calls_that_stand_together_are_one_answer() -> None:
    thought = {"type": "reasoning", "summary": [], "encrypted_content": encode(Reasoning(text="hm"))}

    said = messages(asks("go"), thought, says("look"), call("c1"), call("c2"), output("c1"), output("c2", "rain"))

    assert shape(said) == ["user go", "answer look -> c1 -> c2", "result sunny", "result rain"]
    assert isinstance(said[1], AssistantAnswer)
    assert said[1].reasoning == Reasoning(text="hm")


def test_reasoning_that_is_not_sent_back_whole_is_not_told() -> None:
    said = messages({"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}, says("yes"))

    assert said == [AssistantAnswer("yes")]


def test_what_the_assistant_says_behind_a_result_is_the_next_answer() -> None:
    said = messages(asks("go"), mcp_call("mcp_1"), says("It is 3."))

    assert shape(said) == ["user go", "answer  -> mcp_1", "result 3", "answer It is 3."]


def test_calls_behind_a_result_are_a_round_of_their_own_when_something_stands_between() -> None:
    thought = {"type": "reasoning", "summary": [], "encrypted_content": encode(Reasoning(text="hm"))}

    said = messages(thought, mcp_call("mcp_1"), mcp_call("mcp_2"), thought, mcp_call("mcp_3"), says("done"))

    assert shape(said) == [
        "answer  -> mcp_1 -> mcp_2",
        "result 3",
        "result 3",
        "answer  -> mcp_3",
        "result 3",
        "answer done",
    ]


def test_thoughts_between_calls_that_wait_for_the_client_do_not_part_them() -> None:
    thought = {"type": "reasoning", "summary": []}

    said = messages(call("c1"), thought, call("c2"), mcp_call("mcp_1"), call("c3"), *map(output, ("c1", "c2", "c3")))

    assert shape(said) == ["answer  -> c1 -> c2 -> mcp_1 -> c3", *["result 3"], *["result sunny"] * 3]


def test_a_call_of_the_client_behind_one_that_the_server_ran_is_of_the_same_answer() -> None:
    said = messages(says("Look"), mcp_call("mcp_1"), call("c1"), mcp_call("mcp_2"), output("c1"), says("Done"))

    results = ["result 3", "result 3", "result sunny"]
    assert shape(said) == ["answer Look -> mcp_1 -> c1 -> mcp_2", *results, "answer Done"]


def test_thoughts_behind_an_answer_begin_the_next_one() -> None:
    thought = {"type": "reasoning", "summary": [], "encrypted_content": encode(Reasoning(text="hm"))}

    said = messages(says("one"), thought, says("two"))

    assert shape(said) == ["answer one", "answer two"]


def test_a_call_that_failed_tells_the_model_why() -> None:
    said = messages(mcp_call("mcp_1", output=None, error={"type": "mcp_tool_execution_error", "content": "no luck"}))
    older = messages(mcp_call("mcp_1", output=None, error="no luck"))

    assert shape(said) == shape(older) == ["answer  -> mcp_1", "result no luck"]


def test_an_approved_call_waits_to_be_run_and_what_follows_is_said_behind_it() -> None:
    reader = read(asks("go"), ASKS, AGREES, asks("and then?"))

    assert [(each.call_id, each.arguments) for each in reader.approved] == [("mcpr_1", {"a": 1})]
    assert shape(reader.transcript.messages) == ["user go", "answer  -> mcpr_1"]
    assert shape(reader.later) == ["user and then?"]


def test_an_approved_call_that_was_run_is_not_run_again() -> None:
    reader = read(asks("go"), ASKS, AGREES, RAN, says("It is 3."), asks("and then?"))

    assert (reader.approved, reader.later) == ([], [])
    assert shape(reader.transcript.messages) == [
        "user go",
        "answer  -> mcpr_1",
        "result 3",
        "answer It is 3.",
        "user and then?",
    ]


def test_of_two_approved_calls_the_one_that_was_not_run_is_left() -> None:
    other = ASKS | {"id": "mcpr_2"}

    reader = read(ASKS, other, AGREES, AGREES | {"approval_request_id": "mcpr_2"}, RAN, asks("and?"))

    assert [each.call_id for each in reader.approved] == ["mcpr_2"]
    assert shape(reader.later) == ["user and?"]


def test_a_call_that_was_not_approved_is_answered_with_the_reason() -> None:
    refused = AGREES | {"approve": False}

    assert shape(messages(ASKS, refused)) == ["answer  -> mcpr_1", f"result {DENIED}"]
    assert shape(messages(ASKS, refused | {"reason": "Too dear."}))[-1] == f"result {DENIED} Too dear."


def test_a_consent_that_was_passed_over_is_none_any_more() -> None:
    reader = read(ASKS, AGREES, says("Let us do something else."), asks("fine"))

    assert (reader.approved, reader.later) == ([], [])
    assert shape(reader.transcript.messages)[:2] == ["answer  -> mcpr_1", f"result {NO_RESULT}"]


def test_a_call_that_is_sent_again_with_its_output_is_one() -> None:
    reader = read(call("c1"))
    reader.read(INPUT.validate_python([call("c1"), output("c1")]))

    assert shape(reader.transcript.messages) == ["answer  -> c1", "result sunny"]


def test_a_search_is_told_without_what_it_read() -> None:
    searched = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "plums"}}
    found = searched["action"] | {"sources": [{"type": "url", "url": "https://example.com"}]}  # type: ignore[operator]

    said = messages(call("c1"), searched, mcp_call("mcp_1"), output("c1"))
    sources = messages(searched | {"action": found}, says("Plums are fruit."))

    assert shape(said) == ["answer  -> c1 -> ws_1 -> mcp_1", f"result {NO_RESULTS}", "result 3", "result sunny"]
    assert shape(sources) == ["answer  -> ws_1", "result https://example.com", "answer Plums are fruit."]


def test_a_call_that_nobody_answered_is_closed() -> None:
    assert shape(messages(call("c1"), asks("never mind"))) == [
        "answer  -> c1",
        f"result {NO_RESULT}",
        "user never mind",
    ]


@pytest.mark.parametrize(
    ("items", "place"),
    [
        ([asks("go"), output("c1")], "input[1]"),
        ([call("c1"), output("c1"), output("c1", "rain")], "input[2]"),
        ([AGREES], "input[0]"),
        ([ASKS, AGREES, AGREES], "input[2]"),
    ],
)
def test_an_output_without_a_call_that_waits_for_it_is_refused(items: list[Any], place: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(*items)

    assert refused.value.param == place
    assert refused.value.message.startswith(f"{place}: The ")


def test_outputs_of_calls_that_were_left_out_are_passed_over_where_that_may_be() -> None:
    reader = read(output("c1"), AGREES, asks("go"), lenient=True)

    assert shape(reader.transcript.messages) == ["user go"]


def test_files_are_their_texts_in_order_and_images_their_urls() -> None:
    parts = [
        {"type": "input_text", "text": "Compare"},
        {"type": "input_file", "filename": "a.txt", "file_data": "data:text/plain,a"},
        {"type": "input_image", "image_url": "https://example.com/a.png", "detail": "high"},
    ]
    shown = {"type": "input_file", "file_url": "https://example.com/b.txt"}

    said = messages({"role": "user", "content": parts}, call("c1"), output("c1", [shown]), texts=("alpha", "beta"))

    assert isinstance(said[0], UserInput)
    assert isinstance(said[0].content, list)
    text, file, image = said[0].content
    assert text == TextContentItem(text="Compare")
    assert isinstance(file, TextContentItem)
    assert file.text.startswith("File a.txt:\n")
    assert "alpha" in file.text
    assert isinstance(image, ImageContentItem)
    assert isinstance(image.image, DetailedImage)
    assert image.image.detail == "high"
    assert "beta" in words_of(said[2])


def test_a_compaction_is_what_the_system_said_and_the_rest_in_short() -> None:
    context = CompactedContext(summary="They like plums.", instructions=["Be brief."])

    said = messages({"type": "compaction", "encrypted_content": encode(context)}, asks("go"))

    assert shape(said) == ["system Be brief.", f"user {SUMMARY}\nThey like plums.", "user go"]


def test_arguments_that_are_no_object_are_kept_as_the_model_wrote_them() -> None:
    [answer] = messages(call("c1") | {"arguments": "[1"})

    assert isinstance(answer, AssistantAnswer)
    assert (answer.tool_calls[0].arguments, answer.tool_calls[0].arguments_json) == ("[1", "[1")
