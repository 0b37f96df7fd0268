"""The decoder of server-sent events, beside that of httpx-sse."""

from collections.abc import Iterable

import httpx
import pytest
from httpx_sse import EventSource
from hypothesis import given
from hypothesis import strategies as st

from stint.providers.openai import event_stream
from stint.providers.openai.event_stream import EventStreamDecoder, EventTooLarge

LINES = st.sampled_from(
    ["", "data: a", "data:b", "data", "data:  two", "data: ü☃", ": comment", "id: 1", "event: x", "dataa: c"]
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r", "\r\n"])), max_size=12)


def cut(data: bytes, cuts: list[int]) -> Iterable[bytes]:
    ends = sorted(cut for cut in cuts if cut <= len(data))
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]


def decode(pieces: Iterable[bytes]) -> list[str]:
    decoder = EventStreamDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@given(lines=STREAMS, cuts=st.lists(st.integers(0, 100), max_size=8))
def test_events_are_those_of_another_decoder_however_the_stream_is_cut(
    lines: list[tuple[str, str]], cuts: list[int]
) -> None:
    data = "".join(line + end for line, end in lines).encode()
    response = httpx.Response(200, headers={"Content-Type": "text/event-stream; charset=utf-8"}, content=data)

    expected = [event.data for event in EventSource(response).iter_sse() if event.data]

    assert decode(cut(data, cuts)) == expected
    assert decode(data[at : at + 1] for at in range(len(data))) == expected


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    assert decode([b"\xef\xbb", b"\xbfdata: a\n\n"]) == ["a"]


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert decode([b"data: \xff\n\n"]) == ["\ufffd"]


@pytest.mark.parametrize("endless", [b"x" * 100, b"data: x\n", b"data:\n", b"data"])
def test_an_event_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch, endless: bytes) -> None:
    monkeypatch.setattr(event_stream, "MAX_EVENT_BYTES", 10_000)

    with pytest.raises(EventTooLarge):
        decode(endless for _ in range(20_000))


def test_many_events_have_no_limit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "MAX_EVENT_BYTES", 100)

    assert len(decode(b"data: abc\n: comment\n\n" for _ in range(1000))) == 1000
