"""Log probabilities in the chunks of chat completions servers."""

from typing import Any

import pytest

from stint.domain.inference import Finished, TextChunk, TokenLogprob
from stint.models.openai.answer import ChatCompletionReader, read_logprobs


def entry(token: str, logprob: Any = -0.5, **fields: Any) -> dict[str, Any]:
    return {"token": token, "logprob": logprob} | fields


def choice(text: str, *entries: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "logprobs": {"content": list(entries)}}]}


def test_a_text_has_the_log_probabilities_of_its_tokens() -> None:
    top = [entry("Hi", -0.25, bytes=[72, 105]), entry("Ho", -2)]

    [chunk] = ChatCompletionReader().feed(choice("Hi", entry("Hi", -0.25, bytes=[72, 105], top_logprobs=top)))

    score = TokenLogprob("Hi", -0.25, (72, 105))
    assert chunk == TextChunk("Hi", (TokenLogprob("Hi", -0.25, (72, 105), (score, TokenLogprob("Ho", -2.0))),))


def test_a_token_without_text_counts_with_the_text_that_follows() -> None:
    reader = ChatCompletionReader()

    first = list(reader.feed(choice("", entry("\ufffd"))))
    [second] = reader.feed(choice("\U0001f600", entry("\ufffd")))

    assert first == []
    assert isinstance(second, TextChunk)
    assert len(second.logprobs) == 2


@pytest.mark.parametrize(
    "logprobs", [None, [], {}, {"content": None}, {"content": "x"}, {"content": [None, {"token": 1}]}]
)
def test_log_probabilities_of_another_form_are_omitted(logprobs: Any) -> None:
    assert read_logprobs(logprobs) == []


def test_a_whole_answer_has_them_too() -> None:
    reader = ChatCompletionReader()
    message = {
        "index": 0,
        "message": {"content": "Hi"},
        "logprobs": {"content": [entry("Hi")]},
        "finish_reason": "stop",
    }

    [chunk] = reader.feed({"choices": [message]})
    [end] = reader.finish()

    assert chunk == TextChunk("Hi", (TokenLogprob("Hi", -0.5),))
    assert isinstance(end, Finished)
