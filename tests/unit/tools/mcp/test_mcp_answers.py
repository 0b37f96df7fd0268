import pytest

from stint.domain.errors import InvalidRequest
from stint.tools.mcp.answers import AnswerCheck, ReceiveBudget

VALUES = b"[" + b"{}," * 37_500 + b"{}]"


def feed(check: AnswerCheck, body: bytes, size: int = 65_536) -> None:
    for start in range(0, len(body), size):
        check.feed(body[start : start + size])
    check.finish()


def refused(content_type: str, body: bytes, size: int = 65_536) -> str:
    with pytest.raises(InvalidRequest) as caught:
        feed(AnswerCheck(ReceiveBudget("x.org", 5_000_000), content_type), body, size)
    assert caught.value.code == "url_too_large"
    return caught.value.message


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r"])
@pytest.mark.parametrize("size", [1_000, 65_536])
def test_the_values_of_each_event_are_counted(end: bytes, size: int) -> None:
    event = b"event: message" + end[: len(end) // 2] + b"data: " + VALUES + end

    feed(AnswerCheck(ReceiveBudget("x.org", 5_000_000), "text/event-stream"), event * 5, size)

    two = event.replace(VALUES, VALUES + end[: len(end) // 2] + b"data:" + VALUES)
    assert "50,000 values in a message" in refused("text/event-stream; charset=utf-8", event + two, size)


def test_a_quote_beside_the_data_hides_no_values() -> None:
    body = b': "\nevent: "\ndata: [' + b'"",' * 300_000 + b"0]\n\n"

    assert "values" in refused("text/event-stream", body)


def test_the_values_of_a_document_are_counted_at_its_end() -> None:
    feed(AnswerCheck(ReceiveBudget("x.org", 5_000_000), "application/json"), VALUES)

    assert "values" in refused("application/json", VALUES[:-1] + b"," + VALUES[1:])


def test_bytes_and_lines_are_counted_over_all_answers() -> None:
    received = ReceiveBudget("x.org", 1_000)
    feed(AnswerCheck(received, "application/json"), b"1" * 600)
    with pytest.raises(InvalidRequest, match=r"x\.org sent more than 1,000 bytes"):
        feed(AnswerCheck(received, "application/json"), b"1" * 600)

    assert "50,000 lines" in refused("text/event-stream", b"\n" * 50_001)
    assert "50,000 lines" in refused("text/event-stream", b":\r" * 50_001)
