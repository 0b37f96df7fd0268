"""The events of a turn in the stream of OpenAI's Agents API, and its items: the same ones."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types.beta.agent_session_event import AgentSessionEvent
from openai.types.beta.agent_session_item import AgentSessionItem
from pydantic import TypeAdapter
from tests.unit.openai_agents.turn_fixture import (
    CANCELLED,
    COMPLETED,
    FAILED,
    LABELS,
    WAITING,
    answer,
    call,
    convert,
    dump,
    ending,
    events_of,
    fold,
    partial,
    record,
    result,
    results,
    retrieval,
    steered,
    stored,
    types_of,
    violation,
)

from stint.domain.content import ImageContentItem, ImageSource, TextContentItem
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnRecord
from stint.domain.messages import UserMessage
from stint.domain.run_outcome import RunStatus
from stint.domain.tools import GENERATED_IMAGE, write_denial
from stint.openai_agents.turn_events import TurnEvents, pad_delta
from stint.openai_agents.turn_items import to_items

OWN_ITEMS = {"file_search_call", "code_interpreter_call", "image_generation_call", "shield_call"}
"""Items of this server, which the SDK does not know."""
SDK_EVENT: TypeAdapter[Any] = TypeAdapter(AgentSessionEvent)
SDK_ITEM: TypeAdapter[Any] = TypeAdapter(AgentSessionItem)


def items_of(turn: StoredTurn) -> list[Any]:
    return [dump(item) for item in to_items(turn, LABELS.get)]


def added_in(turn: StoredTurn) -> list[Any]:
    """Return the events of the items that appear in the stream of a turn."""
    return [dump(event) for event in convert(turn) if event.type.endswith("item.added")]


def check(turn: StoredTurn) -> list[Any]:
    """Return the items of a turn, after a check that its stream has the same ones, and that the SDK reads both."""
    items, events = items_of(turn), convert(turn)
    folded = fold(events)
    for item in folded.values():
        if (text := item.pop("_text", None)) is not None:
            assert [part["text"] for part in item["content"]] == [text]
    assert {item["id"]: item for item in items} == folded
    assert len(items) == len(folded)
    outputs = [each["output_index"] for each in added_in(turn) if each["output_index"] is not None]
    assert len(set(outputs)) == len(outputs)
    for item in items:
        if item["type"] not in OWN_ITEMS:
            SDK_ITEM.validate_python(item, strict=True)
    for event in events:
        shown = dump(event)
        if shown.get("item", {}).get("type") not in OWN_ITEMS:
            SDK_EVENT.validate_python(shown, strict=True)
    return items


def test_an_answer_is_streamed_between_its_parts() -> None:
    turn = stored(record(answer("Hello there"), COMPLETED, text_lengths="6,5"))

    events = convert(turn)

    assert types_of(events) == [
        "created",
        "item.added",
        "in_progress",
        "item.added",
        "content_part.added",
        *(["output_text.delta"] * types_of(events).count("output_text.delta")),
        "output_text.done",
        "content_part.done",
        "item.done",
        "completed",
    ]
    user, said = check(turn)
    assert (user["role"], user["content"], user["phase"]) == ("user", [{"type": "input_text", "text": "Hi"}], None)
    assert (said["phase"], said["status"]) == ("final_answer", "completed")
    assert dump(events[-1])["usage"]["total_tokens"] == 5


def test_a_function_call_is_added_when_the_turn_waits() -> None:
    look, ask = call("look_up"), call("ask", arguments={"city": "Bern"})
    turn = stored(record(answer("Let me see", ask, look)), record(results(result(look)), WAITING))

    added = [event["item"]["type"] for event in added_in(turn)]

    assert added == ["message", "message", "mcp_call", "function_call"]
    _, said, asked, looked = check(turn)
    assert said["phase"] == "commentary"
    assert (asked["type"], asked["arguments"], asked["status"]) == ("function_call", {"city": "Bern"}, "completed")
    assert (looked["server_label"], looked["output"], looked["status"]) == ("docs", "found", "completed")


def test_a_resumed_turn_continues_its_items() -> None:
    ask, other = call("ask"), call("other")
    first = record(answer("", ask, other), WAITING)
    turn = stored(
        first, record(results(result(ask), result(other, "broken", error=True))), record(answer("Done"), COMPLETED)
    )

    outputs = [event["item"]["type"] for event in added_in(turn) if event["output_index"] is None]

    assert outputs == ["message", "function_call_output", "function_call_output"]
    found = [item for item in check(turn) if item["type"] == "function_call_output"]
    assert [(item["output"], item["error"], item["status"]) for item in found] == [
        ("found", None, "completed"),
        (None, "broken", "failed"),
    ]


def test_an_approved_call_runs_and_a_denied_one_has_failed() -> None:
    first, second = call("look_up", "a"), call("look_up", "b")
    turn = stored(
        record(answer("", first, second), WAITING),
        record(results(result(second, write_denial(None)))),
        record(results(result(first))),
        record(answer("Done"), COMPLETED),
    )

    assert [item["status"] for item in items_of(stored(turn.records[0]))[1:]] == ["in_progress", "in_progress"]
    _, approved, denied, _ = check(turn)
    assert (approved["status"], approved["output"]) == ("completed", "found")
    assert (denied["status"], denied["error"]) == ("failed", "The user did not approve this call.")


def test_a_message_to_a_running_turn_comes_before_the_next_step() -> None:
    look = call("look_up")
    turn = stored(
        record(answer("", look)),
        record(results(result(look))),
        record(merged=[steered("Hurry")]),
        record(answer("Done"), COMPLETED),
    )

    texts = [item["content"][0]["text"] for item in check(turn) if item["type"] == "message"]

    assert texts == ["Hi", "Hurry", "Done"]


@pytest.mark.parametrize(("outcome", "last"), [(CANCELLED, "cancelled"), (FAILED, "failed")])
def test_an_ending_leaves_open_items_incomplete(outcome: Any, last: str) -> None:
    look, ask = call("look_up"), call("ask")
    turn = stored(record(answer("", look, ask)), record(None, outcome, unfinished=partial("Half of")))

    events = convert(turn)

    assert types_of(events)[-1] == last
    _, looked, asked, said = check(turn)
    assert [item["status"] for item in (looked, asked, said)] == ["incomplete"] * 3
    assert said["content"][0]["text"] == "Half of"
    error = dump(events[-1])["turn"]["error"]
    assert error == (None if last == "cancelled" else {"code": "context_length_exceeded", "message": "Too long."})


def test_a_function_call_that_never_waits_is_not_added() -> None:
    ask = call("ask", arguments="{broken")
    turn = stored(
        record(answer("", ask)), record(results(result(ask, "not JSON", error=True))), record(answer("Oh"), COMPLETED)
    )

    added = [event["item"]["type"] for event in added_in(turn)]

    assert added == ["message", "function_call_output", "message"]
    assert check(turn)[1]["arguments"] == "{broken"


def test_results_without_events_finish_their_items_at_the_end() -> None:
    first, second = call("look_up", "a"), call("look_up", "b")
    turn = stored(
        record(answer("", first, second)),
        record(results(result(first))),
        record(results(result(second)), unannounced=True),
        record(None, CANCELLED),
    )

    assert [item["status"] for item in check(turn)[1:]] == ["completed", "completed"]


def test_early_results_finish_their_items_at_the_end() -> None:
    first, second = call("look_up", "a"), call("look_up", "b")
    turn = stored(
        record(answer("", first, second)), TurnRecord(early=[results(result(second))]), record(None, CANCELLED)
    )

    assert [item["status"] for item in check(turn)[1:]] == ["incomplete", "completed"]


def test_a_blocked_turn_ends_with_what_the_shield_says() -> None:
    turn = stored(record(violation(), COMPLETED))

    _, found, said = check(turn)

    assert (found["type"], found["violation"]["violation_level"]) == ("shield_call", "error")
    assert (said["content"][0]["text"], said["phase"]) == ("I cannot talk about this.", "final_answer")


def test_a_blocked_call_of_a_tool_is_only_a_violation() -> None:
    look = call("look_up")
    turn = stored(
        record(answer("", look)),
        record(results(result(look, "blocked", error=True))),
        record(violation({"touchpoint": "tool-input"}), COMPLETED),
    )

    assert [item["type"] for item in check(turn)] == ["message", "mcp_call", "shield_call"]


def test_a_cut_answer_is_incomplete_and_has_no_calls() -> None:
    turn = stored(record(answer("So far", call("ask"), cut=True), COMPLETED))

    _, said = check(turn)

    assert said["status"] == "incomplete"


def test_retrieval_has_no_item() -> None:
    turn = stored(record(retrieval()), record(answer("Hello"), COMPLETED))

    assert [item["type"] for item in check(turn)] == ["message", "message"]


def test_calls_of_own_tools_have_items_with_their_results() -> None:
    searched = call("brave_search", arguments={"query": "weather"})
    files = call("knowledge_search", arguments={"query": "rules"})
    code = call("code_interpreter", arguments={"code": "print(1)"})
    image = call("photogen", arguments={"query": "a cat"})
    drawn = result(image)
    drawn.metadata = {GENERATED_IMAGE: {"media_type": "image/png"}}
    drawn.content = [ImageContentItem(image=ImageSource(data="iVBORw0")), TextContentItem(text="drawn")]
    turn = stored(
        record(answer("", searched, files, code, image)),
        *(record(results(each)) for each in (result(searched), result(files), result(code, "1", error=True), drawn)),
        record(answer("Done"), COMPLETED),
    )

    found = {item["type"]: item for item in check(turn)}

    assert found["web_search_call"]["action"] == {"type": "search", "query": "weather", "queries": ["weather"]}
    assert found["file_search_call"]["queries"] == ["rules"]
    assert (found["code_interpreter_call"]["code"], found["code_interpreter_call"]["status"]) == ("print(1)", "failed")
    assert (found["image_generation_call"]["result"], found["image_generation_call"]["revised_prompt"]) == (
        "iVBORw0",
        "a cat",
    )


def test_images_of_the_user_are_shown_by_their_url() -> None:
    turn = stored(record(answer("A cat"), COMPLETED))
    turn.header.input_messages = [UserMessage(content=[ImageContentItem(image=ImageSource(data="/9j/4AAQ"))])]

    assert check(turn)[0]["content"] == [{"type": "input_image", "image_url": "data:image/jpeg;base64,/9j/4AAQ"}]


def test_an_answer_that_another_process_repeats_is_incomplete() -> None:
    lost = answer("I was about to")
    whole = events_of(stored(record(answer("Again"), COMPLETED)))
    begun = [
        event for event in events_of(stored(record(lost)))[1:] if getattr(event, "event_type", "") != "step_complete"
    ]

    turn = stored()
    events = convert(turn, [whole[0], *begun, *whole[1:]])

    statuses = [dump(event)["item"]["status"] for event in events if event.type.endswith("item.done")]
    assert statuses == ["incomplete", "completed"]


def test_only_deltas_are_padded() -> None:
    events = [dump(pad_delta(event)) for event in convert(stored(record(answer("Hello"), COMPLETED)))]

    padded = [event for event in events if "obfuscation" in event]
    assert {event["type"] for event in padded} == {"agent.session.turn.output_text.delta"}
    assert all((len(event["delta"]) + len(event["obfuscation"])) % 16 == 0 for event in padded)


texts = st.sampled_from(["", "Hello", "Some longer text, in pieces."])
tools = st.sampled_from(["ask", "other", *LABELS])
endings = st.sampled_from([COMPLETED, CANCELLED, FAILED, None])


@st.composite
def runs(draw: st.DrawFn) -> StoredTurn:
    """Draw a turn: rounds of answers and results, with messages to the running turn, pauses and any ending."""
    records: list[TurnRecord] = []
    for number in range(draw(st.integers(0, 3))):
        calls = [call(name, f"c{number}_{place}") for place, name in enumerate(draw(st.lists(tools, max_size=3)))]
        if draw(st.booleans()):
            records.append(record(merged=[steered()]))
        records.append(record(answer(draw(texts), *calls)))
        here = [each for each in calls if each.tool_name in LABELS]
        records += [record(results(result(each, error=draw(st.booleans())))) for each in here if draw(st.booleans())]
        clients = [each for each in calls if each.tool_name not in LABELS]
        if clients:
            records.append(record(None, ending(RunStatus.awaiting_input)))
            records.append(record(results(*(result(each, error=draw(st.booleans())) for each in clients))))
        if draw(st.booleans()):
            records.append(record(violation({"touchpoint": "tool-input"})))
    last = draw(endings)
    unfinished = partial(draw(texts)) if last in (CANCELLED, FAILED) and draw(st.booleans()) else None
    if last is not None:
        final = draw(st.sampled_from([answer(draw(texts)), violation(), None])) if last is COMPLETED else None
        records.append(record(final, last, unfinished=unfinished))
    return stored(*records)


@settings(deadline=None)
@given(runs())
def test_the_stream_of_any_run_has_the_items_of_its_turn(turn: StoredTurn) -> None:
    check(turn)
    live = TurnEvents(turn.header, "agent_1", LABELS.get)
    pieces = [made for event in events_of(turn) for made in live.convert(event)]
    assert [dump(event) for event in pieces] == [dump(event) for event in convert(turn)]
