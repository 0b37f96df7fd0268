from typing import Any

import pytest
from tests.openresponses.bodies import check_response, check_response_list
from tests.unit.domain.openai.test_response_requests import FULL, MCP

from stint.domain.inference import Usage
from stint.domain.openai.items import FunctionCall, Message, OutputItem
from stint.domain.openai.parts import OutputText
from stint.domain.openai.response_requests import CreateResponse
from stint.domain.openai.response_resource import (
    ItemList,
    ListedResponse,
    Response,
    ResponseList,
    ResponseUsage,
    make_response,
)
from stint.domain.openai.stored_responses import (
    ResponseError,
    ResponseHeader,
    ResponseOutcome,
    ResponseRecord,
    ResponseStatus,
    StoredResponse,
)
from stint.store.documents import to_json

USAGE = Usage(
    input_tokens=3, output_tokens=2, total_tokens=5, cached_tokens=1, cache_write_tokens=1, reasoning_tokens=1
)
MESSAGE = Message(id="msg_1", role="assistant", content=[OutputText(text="Hello.")])
COMPLETED = ResponseOutcome(status=ResponseStatus.completed, completed_at=1_790_000_001, usage=USAGE)


def header(**fields: Any) -> ResponseHeader:
    request = CreateResponse.model_validate({"model": "scripted/demo", "input": "Hi."} | fields)
    return ResponseHeader(
        response_id="resp_1",
        created_at=1_790_000_000,
        model=request.model,
        settings=request.to_settings(),
        previous_response_id=request.previous_response_id,
        conversation_id=request.conversation_id,
        background=request.background,
    )


def shown(response: Response) -> dict[str, Any]:
    body = response.model_dump(mode="json")
    check_response(body)
    return body


def test_a_plain_response_shows_every_key_with_its_default() -> None:
    body = shown(make_response(header(), [MESSAGE], ending=COMPLETED))

    assert body == {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_790_000_000,
        "completed_at": 1_790_000_001,
        "status": "completed",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": "scripted/demo",
        "instructions": None,
        "previous_response_id": None,
        "conversation": None,
        "output": [MESSAGE.model_dump()],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "max_tool_calls": None,
        "text": {"format": {"type": "text"}},
        "reasoning": None,
        "temperature": 1.0,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "top_logprobs": 0,
        "max_output_tokens": None,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 3,
            "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 1},
            "output_tokens": 2,
            "output_tokens_details": {"reasoning_tokens": 1},
            "total_tokens": 5,
        },
        "store": True,
        "service_tier": "default",
        "metadata": {},
        "safety_identifier": None,
        "prompt_cache_key": None,
        "prompt_cache_retention": None,
        "prompt": None,
        "user": None,
    }


def test_what_was_asked_for_is_echoed() -> None:
    body = shown(make_response(header(**FULL), status=ResponseStatus.queued))

    same = set(FULL) & set(body) - {"tools", "tool_choice", "text", "reasoning"}
    assert len(same) > 15
    assert {name: body[name] for name in same} == {name: FULL[name] for name in same}
    assert body["text"]["format"]["schema"] == FULL["text"]["format"]["schema"]
    assert body["reasoning"] == {"effort": "low", "summary": "auto"}
    assert body["tool_choice"]["mode"] == "auto"
    assert (body["status"], body["background"]) == ("queued", True)


def test_credentials_are_not_echoed() -> None:
    body = shown(make_response(header(tools=[MCP | {"authorization": "secret", "headers": {"x-key": "secret"}}])))

    assert "secret" not in str(body)


def test_a_response_that_is_not_stored_says_so() -> None:
    assert shown(make_response(header(store=False)))["store"] is False


def test_a_conversation_is_echoed_as_an_object() -> None:
    assert shown(make_response(header(conversation="conv_1")))["conversation"] == {"id": "conv_1"}


@pytest.mark.parametrize("reason", ["max_output_tokens", "content_filter", "max_tool_calls"])
def test_an_incomplete_response_tells_why(reason: str) -> None:
    ending = ResponseOutcome(status=ResponseStatus.incomplete, usage=USAGE, incomplete_reason=reason)
    output: list[OutputItem] = [FunctionCall(id="fc_1", call_id="c", name="f", arguments="{", status="incomplete")]

    body = shown(make_response(header(), output, ending=ending))

    assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": reason})


def test_a_failed_response_tells_why_in_four_strings() -> None:
    error = ResponseError(code="model_error", message="The model is gone.", type="model_error")

    body = shown(make_response(header(), ending=ResponseOutcome(status=ResponseStatus.failed, error=error)))

    assert body["error"] == {
        "code": "model_error",
        "message": "The model is gone.",
        "type": "model_error",
        "param": "",
    }


@pytest.mark.parametrize("fields", [{}, FULL, {"tools": [{"type": "function", "name": "f", "strict": None}]}])
def test_a_header_is_stored_without_its_defaults_and_read_back(fields: dict[str, Any]) -> None:
    made = header(**fields)

    stored = to_json(made)

    assert ResponseHeader.model_validate_json(stored) == made
    assert b"null" not in stored


def test_the_status_is_what_the_log_says() -> None:
    queued = StoredResponse(header(background=True))
    running = StoredResponse(header())
    ended = StoredResponse(header(), [ResponseRecord(ending=COMPLETED)])

    assert [each.status for each in (queued, running, ended)] == ["queued", "in_progress", "completed"]


def test_a_list_tells_its_ends() -> None:
    listed = ListedResponse.model_validate(make_response(header(), [MESSAGE], ending=COMPLETED).model_dump())

    page = ResponseList.of([listed], has_more=True).model_dump(mode="json")

    check_response_list(page)
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("resp_1", "resp_1", True)
    assert (page["data"][0]["id"], page["data"][0]["input"]) == ("resp_1", [])
    empty = ItemList.of([], has_more=False)
    assert empty.model_dump(mode="json") == {
        "object": "list",
        "data": [],
        "first_id": "",
        "last_id": "",
        "has_more": False,
    }


def test_usage_is_told_in_detail() -> None:
    details = ResponseUsage.of(USAGE).input_tokens_details
    assert (details.cached_tokens, details.cache_write_tokens) == (1, 1)
