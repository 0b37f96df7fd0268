from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stint.domain.errors import ShieldFailed
from stint.domain.inference import (
    AssistantAnswer,
    Finished,
    FinishReason,
    ModelChunk,
    TextChunk,
    ToolCallChunk,
    UserInput,
)
from stint.domain.run_events import Delta, ReasoningEnded, ReasoningProgress, TextDelta, ToolCallDelta
from stint.domain.steps import SafetyViolation
from stint.loop.answer import Answer
from stint.loop.output_guard import Check, OutputGuard
from stint.loop.screening import BoundShield, Screening, screen
from stint.shields.deny_list import DenyList
from stint.shields.port import Shield

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BLOCK = SafetyViolation(violation_level="error", user_message="No.")


def deny(*phrases: str, asked: list[AssistantAnswer] | None = None) -> Check:
    bound = BoundShield(Shield("words", "deny-list", "words", {"phrases": list(phrases)}), DenyList())

    async def check(answer: AssistantAnswer) -> Screening:
        if asked is not None:
            asked.append(answer)
        return await screen([bound], [UserInput("hi"), answer], "assistant-output")

    return check


async def let_through(guard: OutputGuard, chunks: list[ModelChunk]) -> tuple[list[Delta], Answer]:
    """Read an answer as the loop does: what leaves would be in an event."""
    answer, left = Answer(run_id="turn"), []
    for chunk in chunks:
        for delta in answer.add_chunk(chunk):
            assert not isinstance(delta, ReasoningProgress | ReasoningEnded)
            left += await guard.add_delta(delta)
        if guard.blocked:
            break
    left += await guard.finish(answer.calls)
    return left, answer


def chunked(*texts: str) -> list[ModelChunk]:
    return [*(TextChunk(text) for text in texts), Finished(FinishReason.stop)]


def text_of(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas if isinstance(delta, TextDelta))


WORDS = st.sampled_from(["bomb", "red", "mercury", "a", "tea", "fine", "bo", "mb", "reds", "Bomb", "x" * 30])
SPACES = st.sampled_from([" ", " ", "\n", "  ", "", ", "])
TEXTS = st.lists(st.tuples(WORDS, SPACES), max_size=40).map(lambda parts: "".join(map("".join, parts)))
PHRASES = st.lists(st.sampled_from(["bomb", "red mercury", "tea fine", "mercury a tea", "absent"]), max_size=3)
MODES = st.one_of(st.none(), st.integers(1, 60))


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)) | {0, len(text)})
    return [text[start:end] for start, end in pairwise(places)]


@given(st.data(), TEXTS, PHRASES, MODES)
async def test_nothing_of_what_is_forbidden_leaves_and_all_of_what_is_allowed_does(
    data: st.DataObject, text: str, phrases: list[str], window: int | None
) -> None:
    chunks = chunked(*data.draw(cut(text)))
    judged = await deny(*phrases)(AssistantAnswer(text))

    guard = OutputGuard(deny(*phrases), window, overlap=25)
    left, answer = await let_through(guard, chunks)

    assert guard.blocked is (judged.violation is not None)
    if guard.blocked:
        said = text_of(left)
        assert text.startswith(said)
        assert window is not None or not said
        assert (await deny(*phrases)(AssistantAnswer(said))).violation is None
        assert said == text_of_redacted(guard, answer)
    else:
        assert text_of(left) == text


def text_of_redacted(guard: OutputGuard, answer: Answer) -> str:
    message = guard.redact(answer.to_step()).model_response
    assert message.tool_calls == []
    assert isinstance(message.content, str)
    return message.content


@given(st.data(), st.text("ab ", max_size=60), st.text("ab ", max_size=60), st.integers(1, 40), st.integers(0, 300))
async def test_not_even_the_beginning_of_a_phrase_leaves(
    data: st.DataObject, before: str, behind: str, window: int, extra: int
) -> None:
    phrase = "forbidden words here"
    text = f"{before} {phrase} {behind}"
    assume(phrase not in before)

    left, _ = await let_through(OutputGuard(deny(phrase), window, len(phrase) + extra), chunked(*data.draw(cut(text))))

    assert len(text_of(left)) <= len(before) + 1


async def test_without_a_window_all_is_held_until_the_whole_answer_passed() -> None:
    asked: list[AssistantAnswer] = []
    guard = OutputGuard(deny("bomb", asked=asked))

    during = [await guard.add_delta(TextDelta(text=word)) for word in ("all ", "is ", "well")]
    left = await guard.finish()

    assert during == [[], [], []]
    assert left == [TextDelta(text="all is well")]
    assert asked == [AssistantAnswer("all is well")]
    assert guard.screening is not None
    assert guard.screening.violation is None


async def test_with_a_window_text_leaves_while_the_model_still_writes() -> None:
    asked: list[AssistantAnswer] = []
    guard = OutputGuard(deny("bomb", asked=asked), window=10, overlap=4)

    during = [text_of(await guard.add_delta(TextDelta(text=word))) for word in ["word "] * 6]
    rest = text_of(await guard.finish())

    assert during == ["", "word w", "", "ord word w", "", "ord word w"]
    assert rest == "ord "
    assert [answer.text for answer in asked] == ["word " * 2, "word " * 4, "word " * 6]


async def test_the_checks_of_a_long_answer_read_it_a_bounded_number_of_times() -> None:
    asked: list[AssistantAnswer] = []
    text = "ab cd " * 20_000

    left, _ = await let_through(OutputGuard(deny(asked=asked), window=10), chunked(*text.split(" ")))

    assert len(text_of(left)) == len(text.replace(" ", ""))
    assert sum(len(answer.text) for answer in asked) < 18 * len(text)


async def test_a_text_without_spaces_is_checked_all_the_same() -> None:
    guard = OutputGuard(deny("炸弹"), window=4, overlap=2)

    assert text_of(await guard.add_delta(TextDelta(text="我喜欢茶"))) == "我喜"
    assert text_of(await guard.add_delta(TextDelta(text="和炸弹的书"))) == ""
    assert guard.blocked


async def test_when_the_shields_object_nothing_more_is_asked_or_leaves() -> None:
    asked: list[AssistantAnswer] = []
    guard = OutputGuard(deny("bomb", asked=asked), window=5, overlap=0)

    left = [await guard.add_delta(TextDelta(text=text)) for text in ("fine, ", "a bomb ", "and more words ")]

    assert [text_of(deltas) for deltas in left] == ["fine, ", "", ""]
    assert await guard.finish() == []
    assert len(asked) == 2
    assert guard.screening is not None
    assert guard.screening.violation is not None


async def test_tool_calls_leave_behind_the_text_and_only_when_they_passed_too() -> None:
    def answer_with(argument: str) -> list[ModelChunk]:
        call = ToolCallChunk(0, "1", "send", f'{{"text": "{argument}"}}')
        return [TextChunk("Sending. "), call, Finished(FinishReason.tool_calls)]

    passed, _ = await let_through(OutputGuard(deny("bomb"), window=5, overlap=0), answer_with("tea"))
    blocked = OutputGuard(deny("bomb"), window=5, overlap=0)
    left, answer = await let_through(blocked, answer_with("b\\u006fmb"))

    assert [type(delta) for delta in passed] == [TextDelta, ToolCallDelta]
    assert left == [TextDelta(text="Sending. ")]
    assert blocked.blocked
    assert text_of_redacted(blocked, answer) == "Sending. "


async def test_the_unreadable_arguments_of_a_call_are_held_too() -> None:
    call = ToolCallChunk(0, "1", "send", '{"text": "bomb')

    left, _ = await let_through(OutputGuard(deny("bomb")), [call, Finished(FinishReason.tool_calls)])

    assert left == []


async def test_a_shield_that_fails_lets_nothing_leave() -> None:
    async def fail(_: AssistantAnswer) -> Screening:
        raise ShieldFailed("down")

    guard = OutputGuard(fail, window=4)

    with pytest.raises(ShieldFailed):
        await guard.add_delta(TextDelta(text="some text"))
    with pytest.raises(ShieldFailed):
        await guard.finish()


async def test_several_checks_are_one_screening_that_begins_with_the_first() -> None:
    found = [
        Screening("assistant-output", NOW.replace(second=place), NOW.replace(second=place + 1), violation)
        for place, violation in enumerate([None, None, BLOCK])
    ]
    answers = iter(found)

    async def check(_: AssistantAnswer) -> Screening:
        return next(answers)

    guard = OutputGuard(check, window=2, overlap=0)
    for _ in range(3):
        await guard.add_delta(TextDelta(text="hi "))

    screening = guard.screening
    assert screening is not None
    assert (screening.step_id, screening.started_at) == (found[0].step_id, found[0].started_at)
    assert (screening.completed_at, screening.violation) == (found[2].completed_at, BLOCK)


async def test_without_shields_every_delta_leaves_as_it_is() -> None:
    guard = OutputGuard(None)
    deltas: list[Delta] = [TextDelta(text="a"), ToolCallDelta(tool_call="x", parse_status="failed")]

    assert [await guard.add_delta(delta) for delta in deltas] == [[delta] for delta in deltas]
    assert await guard.finish() == []
    assert not guard.blocked
    assert guard.screening is None
