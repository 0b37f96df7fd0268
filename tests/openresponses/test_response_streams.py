"""The checks of streams let the good one pass, and notice each thing that would lose something for a client."""

from collections.abc import Callable

import pytest
from tests.openresponses.frames import check_stream
from tests.openresponses.samples import CALL, encode, response, stream
from tests.openresponses.schema import Json, Mismatch

Spoil = Callable[[list[Json]], object]


def find(events: list[Json], name: str) -> Json:
    return next(event for event in events if event["type"] == name)


def renumber(events: list[Json]) -> None:
    for number, event in enumerate(events):
        event["sequence_number"] = number


def drop(events: list[Json], name: str) -> None:
    events.remove(find(events, name))
    renumber(events)


def remove(events: list[Json], place: int) -> None:
    del events[place]
    renumber(events)


def insert(events: list[Json], place: int, event: Json) -> None:
    events.insert(place, dict(event))
    renumber(events)


def put_first(events: list[Json], name: str) -> None:
    event = find(events, name)
    events.remove(event)
    events.insert(2, event)
    renumber(events)


FAULT: Json = {"code": "x", "message": "x", "param": None}
ERROR: Json = {"type": "error", **FAULT, "error": {"type": "x", **FAULT}}
SPOILED: dict[str, tuple[Spoil, str]] = {
    "a number is left out": (lambda it: it.pop(4), "has not number 4"),
    "numbers begin at one": (
        lambda it: [each.update(sequence_number=i + 1) for i, each in enumerate(it)],
        "number 0",
    ),
    "nothing says created": (lambda it: drop(it, "response.created"), "first event is response.in_progress"),
    "an item is not added": (lambda it: drop(it, "response.output_item.added"), "before item 0 was added"),
    "an item is not done": (lambda it: remove(it, -2), "were never done"),
    "a part is not added": (lambda it: drop(it, "response.content_part.added"), "before part 0 was added"),
    "a part is not done": (lambda it: drop(it, "response.content_part.done"), "was not streamed"),
    "a delta is lost": (lambda it: drop(it, "response.output_text.delta"), "the deltas 'you'"),
    "arguments are lost": (lambda it: drop(it, "response.function_call_arguments.delta"), "the deltas"),
    "a text is not done": (lambda it: drop(it, "response.output_text.done"), "done before its text"),
    "content comes first": (lambda it: put_first(it, "response.output_text.delta"), "before item 3 was added"),
    "an item has another id": (lambda it: find(it, "response.output_text.delta").update(item_id="x"), "of item x"),
    "an index is taken twice": (lambda it: it[-6].update(output_index=3), "Item 3 is added as number 4"),
    "the end has another id": (lambda it: it[-1]["response"]["output"][3].update(id="x"), "None in the end"),
    "the end has another text": (
        lambda it: it[-1]["response"]["output"][3]["content"][0].update(text="x"),
        "in the end",
    ),
    "the end is another response": (lambda it: it[-1]["response"].update(id="x"), "id changed"),
    "the end is not the last": (lambda it: it.append(it[-1] | {"sequence_number": 99}), "after the end"),
    "there is no end": (lambda it: it.pop(), "before the end"),
    "an end says that it goes on": (
        lambda it: it[-1].update(response=it[0]["response"]),
        "status is in_progress",
    ),
    "an error is not the end": (
        lambda it: insert(it, 3, ERROR),
        "between the error and the end",
    ),
    "hosted items were not asked for": (
        lambda it: [each.update(tools=[]) for each in lives(it)],
        "nor of anything",
    ),
    "a state is left out": (lambda it: drop(it, "response.web_search_call.searching"), "The states"),
    "logprobs are null": (lambda it: find(it, "response.output_text.delta").update(logprobs=None), "logprobs"),
    "an event is unknown": (
        lambda it: find(it, "response.mcp_list_tools.completed").update(type="acme:x"),
        "acme:x",
    ),
    "credentials are echoed": (lambda it: lives(it)[0]["tools"][0].update(authorization="x"), "tools"),
}


def lives(events: list[Json]) -> list[Json]:
    return [event["response"] for event in events if "response" in event]


def test_a_good_stream_passes() -> None:
    events = stream()

    assert check_stream(encode(events)) == events


@pytest.mark.parametrize("fault", sorted(SPOILED))
def test_a_fault_is_noticed(fault: str) -> None:
    spoil, complaint = SPOILED[fault]
    events = stream()
    spoil(events)

    with pytest.raises(Mismatch, match=complaint):
        check_stream(encode(events))


def cut_short(status: str, *, closed: bool = True, shown: bool = False) -> list[Json]:
    """A stream whose last item broke off."""
    events = stream()
    cut = CALL | {"status": "incomplete", "arguments": ""}
    events[-2]["item"] = cut
    del events[-5 : -2 if closed else -1]
    *output, _ = events.pop()["response"]["output"]
    last = response(status, [*output, cut] if shown else output, tools=events[0]["response"]["tools"])
    events += [dict(ERROR), {"type": f"response.{status}", "response": last}][status == "completed" :]
    renumber(events)
    return events


@pytest.mark.parametrize(("status", "shown"), [("completed", False), ("failed", True)])
def test_a_broken_item_stays_in_a_failed_response_only(status: str, shown: bool) -> None:
    """In a response that did not fail, the item is made again."""
    events = cut_short(status, shown=shown)

    assert check_stream(encode(events)) == events


@pytest.mark.parametrize(
    ("fields", "complaint"), [({"closed": False, "shown": True}, "were never done"), ({"shown": False}, "in the end")]
)
def test_a_failure_hides_no_item_and_leaves_none_open(fields: dict[str, bool], complaint: str) -> None:
    with pytest.raises(Mismatch, match=complaint):
        check_stream(encode(cut_short("failed", **fields)))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b"\n\n", b"\r\n\r\n", "carriage returns"),
        (b"event: response.in_progress\n", b"", "Not an event line"),
        (b"event: response.in_progress", b"event: response.queued", "carries response.in_progress"),
        (b"data: [DONE]\n\n", b"", "does not end with"),
        (b"data: [DONE]\n\n", b"data: [DONE]\n", "in the middle"),
        (b"data: [DONE]\n\n", b"data: [DONE]\n\ndata: [DONE]\n\n", "comes after"),
        (b"event: response.in_progress", b"id: 1\nevent: response.in_progress", "Not an event line"),
    ],
)
def test_bytes_that_a_client_would_not_read_are_noticed(old: bytes, new: bytes, complaint: str) -> None:
    body = encode(stream()).replace(old, new)

    with pytest.raises(Mismatch, match=complaint):
        check_stream(body)


def test_comments_pass() -> None:
    body = b": ping\n\n" + encode(stream())

    assert len(check_stream(body)) == len(stream())


def test_a_stream_that_was_cut_off_is_held_to_what_there_is() -> None:
    body = encode(stream()[:9], end="event: response.")
    spoiled = body.replace(b'"sequence_number": 0', b'"sequence_number": 7')

    assert check_stream(body, whole=False) == stream()[:9]
    with pytest.raises(Mismatch, match="number 0"):
        check_stream(spoiled, whole=False)


def test_a_resumed_stream_goes_on_at_the_next_number() -> None:
    body = encode(stream()[7:])

    assert check_stream(body, after=6) == stream()[7:]
    with pytest.raises(Mismatch, match="number 6"):
        check_stream(body, after=5)
