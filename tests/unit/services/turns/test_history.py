from typing import Any

import pytest

from stint.documents.marker import mark_document
from stint.domain.content import URL, DocumentText, ImageContentItem, ImageSource, TextContentItem
from stint.domain.errors import (
    ContextLengthExceeded,
    DeadlineExceeded,
    Interrupted,
    InvalidRequest,
    ModelError,
    ModelOverloaded,
    RateLimited,
    ShieldFailed,
    StintError,
    StoreUnavailable,
    Unexpected,
)
from stint.domain.inference import AssistantAnswer, ModelMessage, ToolResult, UserInput
from stint.domain.llama_stack.stored_turns import StoredTurn, TurnHeader, TurnRecord
from stint.domain.llama_stack.turns import TurnOverrides
from stint.domain.messages import UserMessage
from stint.domain.run_outcome import ErrorInfo, RunOutcome, RunStatus
from stint.domain.schema import now
from stint.domain.steps import (
    CompletionMessage,
    InferenceStep,
    SafetyViolation,
    ShieldCallStep,
    Step,
    ToolExecutionStep,
)
from stint.domain.tools import ToolCall, ToolResponse, ToolResponseMessage
from stint.loop.transcript import BLOCKED, CALL_ID, NO_RESULT, NOT_TAKEN, SENT
from stint.services.turns.history import transcribe

IMAGE = ImageContentItem(image=ImageSource(url=URL(uri="data:image/png;base64,AAAA")))
VIOLATION = SafetyViolation(violation_level="error", user_message="I can't.")
DOCUMENT = DocumentText(text="worse", mime_type="text/plain")
STEP_ID = "01a20182-de7d-7000-9a68-defbbac42920"
COMMON: dict[str, Any] = {"turn_id": "t", "step_id": "s", "started_at": now()}


def turn(*said: Any, steps: list[Step] | None = None, documents: Any = (), status: str = "completed") -> StoredTurn:
    messages = [UserMessage(content=each) if isinstance(each, str) else each for each in said]
    header = TurnHeader(
        turn_id="t",
        session_id="s",
        input_messages=messages,
        documents=list(documents),
        started_at=now(),
        overrides=TurnOverrides(),
    )
    records = [TurnRecord(step=step) for step in steps or []]
    if status == "cancelled":  # it waited for its client
        records.append(TurnRecord(ending=RunOutcome(status=RunStatus.awaiting_input, completed_at=now())))
    return StoredTurn(header, [*records, TurnRecord(ending=RunOutcome(status=RunStatus(status), completed_at=now()))])


def failed(*said: Any, error: StintError, steps: list[Step] | None = None, documents: Any = ()) -> StoredTurn:
    stored = turn(*said, steps=steps, documents=documents)
    ending = RunOutcome(status=RunStatus.failed, completed_at=now(), error=ErrorInfo.of(error))
    stored.records[-1] = TurnRecord(ending=ending)
    return stored


def answer(text: str = "", *call_ids: str) -> InferenceStep:
    calls = [call(call_id) for call_id in call_ids]
    return InferenceStep(**COMMON, model_response=CompletionMessage(content=text, tool_calls=calls))


def call(call_id: str) -> ToolCall:
    return ToolCall(call_id=call_id, tool_name="add", arguments={})


def execution(*call_ids: str) -> ToolExecutionStep:
    responses = [ToolResponse(call_id=each, tool_name="add", content=f"result {each}") for each in call_ids]
    return ToolExecutionStep(**COMMON, tool_calls=[call(each) for each in call_ids], tool_responses=responses)


def tool_message(call_id: str) -> ToolResponseMessage:
    return ToolResponseMessage(call_id=call_id, content=f"late {call_id}")


def messages_of(*turns: StoredTurn) -> list[ModelMessage]:
    transcript = transcribe(turns)
    transcript.close()
    return transcript.messages


def test_turns_come_in_order_and_results_are_bound_to_their_calls() -> None:
    messages = messages_of(
        turn("one", steps=[answer("Let me see.", "a", "b"), execution("a", "b"), answer("1")]),
        turn("two", steps=[answer("2")]),
    )

    assert messages == [
        UserInput("one"),
        AssistantAnswer("Let me see.", (call("a"), call("b"))),
        ToolResult("a", "add", "result a"),
        ToolResult("b", "add", "result b"),
        AssistantAnswer("1"),
        UserInput("two"),
        AssistantAnswer("2"),
    ]


def test_cancelled_turns_stay_with_their_input_and_steps() -> None:
    messages = messages_of(turn("one"), turn("two", steps=[answer("x", "a")], status="cancelled"))

    assert messages == [
        UserInput("one"),
        UserInput("two"),
        AssistantAnswer("x", (call("a"),)),
        ToolResult("a", "add", NO_RESULT),
    ]


REFUSED: dict[str, StintError] = {
    "context_length": ContextLengthExceeded("too long"),
    "image": InvalidRequest("no such image", code="url_unavailable"),
}
FAILED: dict[str, StintError] = {
    "model": ModelError("the connection was closed"),
    "overloaded": ModelOverloaded("busy"),
    "rate_limit": RateLimited("too fast"),
    "deadline": DeadlineExceeded("over"),
    "storage": StoreUnavailable("throttled"),
    "unexpected": Unexpected(),
}
UNCHECKED = REFUSED | {"shield": ShieldFailed("no verdict")}


@pytest.mark.parametrize("failure", UNCHECKED)
@pytest.mark.parametrize("screened", [False, True])
def test_input_that_was_refused_is_not_said_again_as_it_would_fail_every_later_turn(
    failure: str, screened: bool
) -> None:
    steps: list[Step] = [ShieldCallStep(**COMMON)] if screened else []
    lost = failed("two", error=UNCHECKED[failure], steps=steps, documents=[DOCUMENT])

    messages = messages_of(turn("one", steps=[answer("fine")]), lost, turn("three"))

    assert messages == [UserInput("one"), AssistantAnswer("fine"), UserInput("three")]


@pytest.mark.parametrize("failure", FAILED)
@pytest.mark.parametrize("screened", [False, True])
def test_input_that_the_model_did_not_refuse_stays(failure: str, screened: bool) -> None:
    steps: list[Step] = [ShieldCallStep(**COMMON)] if screened else []
    lost = failed("two", error=FAILED[failure], steps=steps, documents=[DOCUMENT])

    messages = messages_of(turn("one", steps=[answer("fine")]), lost, turn("three"))

    document = UserInput(mark_document("worse", "text/plain"))
    assert messages[2:] == [document, UserInput("two"), UserInput("three")]


def test_input_of_a_turn_whose_process_died_stays_as_nobody_has_refused_it() -> None:
    assert messages_of(failed("one", error=Interrupted("died"))) == [UserInput("one")]


@pytest.mark.parametrize("failure", REFUSED)
def test_results_that_the_model_did_not_take_are_left_out_of_a_turn_that_did_something(failure: str) -> None:
    steps: list[Step] = [answer("", "a"), execution("a"), answer("", "b", "c"), execution("b"), execution("c")]

    messages = messages_of(failed("one", error=REFUSED[failure], steps=steps), turn("two"))

    assert messages == [
        UserInput("one"),
        AssistantAnswer("", (call("a"),)),
        ToolResult("a", "add", "result a"),
        AssistantAnswer("", (call("b"), call("c"))),
        ToolResult("b", "add", NOT_TAKEN),
        ToolResult("c", "add", NOT_TAKEN),
        UserInput("two"),
    ]


@pytest.mark.parametrize("failure", FAILED)
def test_results_stay_when_it_was_not_for_them_that_the_turn_failed(failure: str) -> None:
    messages = messages_of(failed("one", error=FAILED[failure], steps=[answer("", "a"), execution("a")]))

    assert messages[-1] == ToolResult("a", "add", "result a")


@pytest.mark.parametrize("status", [RunStatus.failed, RunStatus.cancelled])
def test_calls_that_were_sent_without_an_answer_may_have_taken_effect(status: RunStatus) -> None:
    broken = failed("one", error=Interrupted("died"), steps=[answer("", "a", "b", "c"), execution("b")])
    assert broken.records[-1].ending is not None
    broken.records[-1].ending.status = status
    broken.records[0].unsent = ["c"]

    messages = messages_of(broken, turn("two"))

    assert messages[2:] == [
        ToolResult("a", "add", SENT),
        ToolResult("b", "add", "result b"),
        ToolResult("c", "add", NO_RESULT),
        UserInput("two"),
    ]


def test_calls_of_a_completed_turn_that_did_not_run_have_no_result() -> None:
    messages = messages_of(turn("one", steps=[answer("", "a")]), turn("two"))

    assert messages[2:] == [ToolResult("a", "add", NO_RESULT), UserInput("two")]


def test_a_result_that_arrived_early_is_shown_in_the_models_order() -> None:
    broken = failed("one", error=Interrupted("died"), steps=[answer("", "a", "b", "c"), execution("a")])
    broken.records.insert(1, TurnRecord(early=[execution("c").model_copy(update={"step_id": "early"})]))

    messages = messages_of(broken)

    assert messages[2:] == [
        ToolResult("a", "add", "result a"),
        ToolResult("b", "add", SENT),
        ToolResult("c", "add", "result c"),
    ]


def test_an_answer_of_the_wrong_form_stays_with_what_was_asked() -> None:
    messages = messages_of(failed("one", error=FAILED["model"], steps=[answer("{")]))

    assert messages == [UserInput("one"), AssistantAnswer("{")]


def test_calls_without_an_answer_are_closed_before_what_follows_and_only_in_the_view() -> None:
    first = turn("one", steps=[answer("", "a", "b"), execution("b")])
    before = first.header.model_dump_json(), [record.model_dump_json() for record in first.records]

    messages = messages_of(first, turn("two"))

    assert messages[2:] == [
        ToolResult("b", "add", "result b"),
        ToolResult("a", "add", NO_RESULT),
        UserInput("two"),
    ]
    assert (first.header.model_dump_json(), [record.model_dump_json() for record in first.records]) == before


def test_tool_messages_of_a_new_turn_answer_waiting_calls_wherever_they_stand() -> None:
    document = DocumentText(text="facts", mime_type="text/plain")
    waiting = turn("one", steps=[answer("", "a", "b")], status="cancelled")

    messages = messages_of(waiting, turn("two", tool_message("b"), documents=[document]))

    assert messages[2:] == [
        ToolResult("b", "add", "late b"),
        ToolResult("a", "add", NO_RESULT),
        UserInput(mark_document("facts", "text/plain")),
        UserInput("two"),
    ]


def test_tool_messages_that_answer_nothing_become_user_input() -> None:
    waiting = turn("one", steps=[answer("", "a")], status="cancelled")

    messages = messages_of(waiting, turn(tool_message("a"), tool_message("a"), tool_message("x")))

    assert messages[2] == ToolResult("a", "add", "late a")
    assert messages[3:] == [
        UserInput([TextContentItem(text=f"Result of tool call {each}:"), TextContentItem(text=f"late {each}")])
        for each in ("a", "x")
    ]


def test_images_reach_the_model_and_context_does_not() -> None:
    content: list[TextContentItem | ImageContentItem] = [TextContentItem(text="what is this?"), IMAGE]

    messages = messages_of(turn(UserMessage(content=content, context="secret")))

    assert messages == [UserInput(content)]


def test_a_shields_words_take_the_place_of_an_answer_that_it_blocked() -> None:
    steps: list[Step] = [ShieldCallStep(**COMMON), answer(), ShieldCallStep(**COMMON, violation=VIOLATION)]

    assert messages_of(turn("one", steps=steps)) == [UserInput("one"), AssistantAnswer("I can't.")]


def test_what_an_input_shield_blocked_is_in_no_later_call() -> None:
    """Unlike in the original: users would ask for it again."""
    blocked = turn("bad", steps=[ShieldCallStep(**COMMON, violation=VIOLATION)], documents=[DOCUMENT])

    messages = messages_of(turn("one", steps=[answer("fine")]), blocked, turn("three"))

    assert messages == [
        UserInput("one"),
        AssistantAnswer("fine"),
        UserInput(BLOCKED),
        UserInput(BLOCKED),
        AssistantAnswer("I can't."),
        UserInput("three"),
    ]


def test_results_that_an_input_shield_blocked_stay_bound_to_their_calls() -> None:
    steps: list[Step] = [answer("", "c1"), execution("c1"), ShieldCallStep(**COMMON, violation=VIOLATION)]

    _, _, result, words = messages_of(turn("one", steps=steps))

    assert result == ToolResult("c1", "add", BLOCKED)
    assert words == AssistantAnswer("I can't.")


def test_an_empty_answer_is_left_out() -> None:
    assert messages_of(turn("one", steps=[answer()])) == [UserInput("one")]


def parsed_execution(*call_ids: str, name: str = "add", step_id: str = STEP_ID) -> ToolExecutionStep:
    """The results of calls that the client read out of an answer's text."""
    responses = [ToolResponse(call_id=each, tool_name=name, content=f"result {each}") for each in call_ids]
    return ToolExecutionStep(**COMMON | {"step_id": step_id}, tool_calls=[], tool_responses=responses)


def parsed(call_id: str, name: str = "add") -> ToolCall:
    return ToolCall(call_id=call_id, tool_name=name, arguments={}, arguments_json="{}")


def test_results_of_calls_read_in_a_text_get_calls() -> None:
    """The client read the calls in a text. Providers refuse results without calls."""
    messages = messages_of(
        turn("one", steps=[answer("CALL add"), parsed_execution("a", "b"), answer("1")]), turn("two")
    )

    assert messages == [
        UserInput("one"),
        AssistantAnswer("CALL add", (parsed("a"), parsed("b"))),
        ToolResult("a", "add", "result a"),
        ToolResult("b", "add", "result b"),
        AssistantAnswer("1"),
        UserInput("two"),
    ]


@pytest.mark.parametrize("call_id", ["", "x" * 41, "a b", "\u00e9", "a\n", "used"])
def test_call_ids_that_a_provider_would_refuse_are_replaced_in_the_same_way_every_time(call_id: str) -> None:
    earlier = turn("zero", steps=[answer("", "used"), execution("used")])
    stored = turn("one", steps=[answer("CALL add"), parsed_execution("fine", call_id)])

    _, _, _, _, made, *results = messages_of(earlier, stored)

    assert isinstance(made, AssistantAnswer)
    ids = [each.call_id for each in made.tool_calls]
    assert ids == ["fine", f"call_{STEP_ID.replace('-', '')}01"]
    assert all(CALL_ID.fullmatch(each) for each in ids)
    assert results == [ToolResult(ids[0], "add", "result fine"), ToolResult(ids[1], "add", f"result {call_id}")]


def test_results_of_read_calls_stand_alone_after_an_answer_with_calls_or_without_text() -> None:
    open_call = turn("one", steps=[answer("", "a", "b"), parsed_execution("x", "b")])
    silent = turn("two", steps=[answer(), parsed_execution("y")])

    assert messages_of(open_call, silent) == [
        UserInput("one"),
        AssistantAnswer("", (call("a"), call("b"))),
        ToolResult("b", "add", "result b"),
        ToolResult("a", "add", NO_RESULT),
        AssistantAnswer("", (parsed("x"),)),
        ToolResult("x", "add", "result x"),
        UserInput("two"),
        AssistantAnswer("", (parsed("y"),)),
        ToolResult("y", "add", "result y"),
    ]


def test_results_of_read_calls_that_an_input_shield_blocked_stay_bound_to_them() -> None:
    steps: list[Step] = [answer("CALL add"), parsed_execution("a"), ShieldCallStep(**COMMON, violation=VIOLATION)]

    assert messages_of(turn("one", steps=steps))[1:] == [
        AssistantAnswer("CALL add", (parsed("a"),)),
        ToolResult("a", "add", BLOCKED),
        AssistantAnswer("I can't."),
    ]


def test_results_of_read_calls_that_the_model_did_not_take_are_left_out() -> None:
    steps: list[Step] = [answer("CALL add"), parsed_execution("a")]

    assert messages_of(failed("one", error=REFUSED["image"], steps=steps))[-1] == ToolResult("a", "add", NOT_TAKEN)
