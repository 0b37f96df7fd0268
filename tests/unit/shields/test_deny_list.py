from typing import Any

import pytest

from stint.domain.content import ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import InvalidRequest, ShieldFailed, StintError, TooLarge
from stint.domain.inference import AssistantAnswer, ModelMessage, SystemText, ToolResult, UserInput
from stint.domain.tools import ToolCall
from stint.shields import deny_list
from stint.shields.deny_list import DenyList
from stint.shields.port import REFUSAL, Shield, Touchpoint


def shield(**params: Any) -> Shield:
    return Shield("words", "deny-list", "words", params)


async def entry(said: str | ModelMessage, **params: Any) -> str | None:
    message = UserInput(said) if isinstance(said, str) else said
    violation = await DenyList().check(shield(**params), [message], "user-input")
    return None if violation is None else str(violation.metadata["entry"])


async def test_a_forbidden_phrase_is_a_violation_that_does_not_repeat_it() -> None:
    violation = await DenyList().check(
        shield(phrases=["fine", "Red Mercury"]), [UserInput("red  mercury?")], "user-input"
    )

    assert violation is not None
    assert violation.violation_level == "error"
    assert violation.user_message == REFUSAL
    assert violation.metadata == {"violation_type": "deny_list", "entry": "phrases[1]"}


@pytest.mark.parametrize(
    ("text", "phrase", "found"),
    [
        ("the cat sat", "cat", True),
        ("The CAT", "cat", True),
        ("concatenate", "cat", False),
        ("category", "cat", False),
        ("concatenate, cat", "cat", True),
        ("learn c++ now", "C++", True),
        ("red\n\tmercury", "red mercury", True),
        ("\uff43\uff41\uff54", "cat", True),
        ("c\u200bat", "cat", True),
        ("STRASSE", "straße", True),
        ("我不喜欢炸弹的", "炸弹", True),
        ("我cat你", "cat", True),
        ("anything", "", False),
        ("anything", " \u200b ", False),
    ],
)
async def test_phrases_are_found_as_a_reader_sees_them(text: str, phrase: str, found: bool) -> None:
    assert await entry(text, phrases=[phrase]) == ("phrases[0]" if found else None)


async def test_parameters_widen_and_narrow_the_search() -> None:
    assert await entry("concatenate", phrases=["cat"], whole_words=False) == "phrases[0]"
    assert await entry("CAT", phrases=["cat"], case_sensitive=True) is None
    assert await entry("CAT", patterns=["c.t"], case_sensitive=True) is None
    assert await entry("CAT", patterns=["c.t"]) == "patterns[0]"
    assert await entry("call 555-1234", phrases=["x"], patterns=["nope", r"\b\d{3}-\d{4}\b"]) == "patterns[1]"
    assert await entry("anything") is None


async def test_all_that_was_said_since_the_other_side_spoke_is_checked_and_nothing_before() -> None:
    params = shield(phrases=["bomb"])
    earlier: list[ModelMessage] = [SystemText("never say bomb"), UserInput("bomb"), AssistantAnswer("bomb")]
    document_and_question = [UserInput("a bomb"), UserInput("sum it up")]

    assert await DenyList().check(params, [*earlier, UserInput("hello")], "user-input") is None
    assert await DenyList().check(params, [*earlier, *document_and_question], "user-input") is not None
    assert await DenyList().check(
        params, [*earlier, ToolResult("1", "t", "bomb"), ToolResult("2", "t", "x")], "user-input"
    )
    assert await DenyList().check(params, [], "user-input") is None


async def test_calls_of_tools_are_read_without_the_escapes_of_json() -> None:
    call = ToolCall(call_id="1", tool_name="send", arguments={"to": ["x", {"text": 'a "bomb"\nhere'}]})
    raw = ToolCall(call_id="1", tool_name="send", arguments='{"text": "bomb')

    assert await entry(AssistantAnswer("", (call,)), phrases=['"bomb" here']) == "phrases[0]"
    assert await entry(AssistantAnswer("fine", (raw,)), phrases=["bomb"]) == "phrases[0]"
    assert await entry(AssistantAnswer("", (call,)), phrases=["send"]) == "phrases[0]"


async def test_a_phrase_is_found_across_the_parts_of_a_message() -> None:
    parts: list[TextContentItem | ImageContentItem] = [
        TextContentItem(text="red"),
        TextContentItem(text="mercury"),
        ImageContentItem(image=ImageSource(data="AA==")),
    ]

    assert await entry(UserInput(parts), phrases=["red mercury"]) == "phrases[0]"


async def test_level_and_message_are_the_operators_choice() -> None:
    params = shield(phrases=["cat"], violation_level="warn", user_message="No cats.")

    violation = await DenyList().check(params, [UserInput("cat")], "user-input")

    assert violation is not None
    assert (violation.violation_level, violation.user_message) == ("warn", "No cats.")


@pytest.mark.parametrize(
    ("params", "where"),
    [
        ({"phrases": "cat"}, "params.phrases"),
        ({"phrases": ["x" * 201]}, "params.phrases.0"),
        ({"words": ["cat"]}, "params.words"),
        ({"phrases": [f"{number:0>200}" for number in range(1000)]}, "params.phrases"),
        ({"phrases": ["\ufdfa" * 200] * 100}, "params.phrases"),
        ({"patterns": ["fine", "(a"]}, "params.patterns[1]"),
        ({"patterns": [r"(a)\1"]}, "params.patterns[0]"),
        ({"user_message": ""}, "params.user_message"),
        ({"violation_level": "fatal"}, "params.violation_level"),
    ],
)
async def test_parameters_at_fault_are_named_at_registration_and_fail_a_check(params: Any, where: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        DenyList().validate(shield(**params))
    with pytest.raises(ShieldFailed, match="words"):
        await DenyList().check(shield(**params), [UserInput("x")], "user-input")

    assert caught.value.param == where
    assert "'words'" in caught.value.message


@pytest.mark.parametrize(
    ("said", "error"), [(UserInput("a" * 1_000_001), TooLarge), (AssistantAnswer("a" * 1_000_001), ShieldFailed)]
)
async def test_a_text_that_is_too_long_is_no_pass(said: ModelMessage, error: type[StintError]) -> None:
    touchpoint: Touchpoint = "user-input" if isinstance(said, UserInput) else "assistant-output"

    with pytest.raises(error, match="'words' checks at most 1000000 characters; the text has 1000001"):
        await DenyList().check(shield(phrases=["b"]), [said], touchpoint)


async def test_a_long_text_is_checked_with_many_phrases_and_patterns() -> None:
    phrases = [f"phrase number {number}" for number in range(1_000)]
    text = "phrase number and " * 50_000

    assert await entry(text, phrases=phrases, patterns=[r"\b\d{16}\b", "(a+)+$", "x.*y"]) is None
    assert await entry(text + "phrase number 999", phrases=phrases) == "phrases[999]"


async def test_a_check_that_takes_too_much_work_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deny_list, "MOST_STEPS", 1)

    with pytest.raises(ShieldFailed, match="Simplify its patterns"):
        await entry("text", patterns=["(a|b)*c and more"])
