from typing import Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter
from tests.openresponses.bodies import check_event

from stint.domain.openai.code_interpreter import CodeInterpreterCall
from stint.domain.openai.file_search import FileSearchCall
from stint.domain.openai.image_generation import ImageGenerationCall
from stint.domain.openai.items import FunctionCall, Message, WebSearchAction, WebSearchCall
from stint.domain.openai.mcp_items import McpCall, McpListTools
from stint.domain.openai.parts import OutputText, ReasoningText, RefusalPart, SummaryText
from stint.domain.openai.response_events import ErrorEvent, ResponseEvent
from stint.domain.openai.response_resource import make_response
from stint.domain.openai.stored_responses import ResponseError, ResponseHeader

EVENT: TypeAdapter[ResponseEvent] = TypeAdapter(ResponseEvent)
CLASSES: tuple[type[BaseModel], ...] = get_args(get_args(ResponseEvent)[0])
HEADER = ResponseHeader.model_validate(
    {
        "response_id": "resp_1",
        "created_at": 1_790_000_000,
        "model": "scripted/demo",
        "settings": {
            "tools": [
                {"type": "mcp", "server_label": "w", "server_url": "https://a"},
                {"type": "web_search"},
                {"type": "file_search", "vector_store_ids": ["vs_1"]},
                {"type": "image_generation"},
                {"type": "code_interpreter", "container": {"type": "auto"}},
            ],
            "reasoning": {"effort": "low"},
        },
    }
)
ERROR = ResponseError(code="model_error", message="The model is gone.", type="model_error")
RESPONSE = make_response(HEADER)
PLACE = {
    "sequence_number": 3,
    "item_id": "msg_1",
    "output_index": 0,
    "content_index": 0,
    "summary_index": 0,
    "annotation_index": 0,
}
VALUES: dict[str, Any] = PLACE | {
    "delta": "He",
    "text": "Hello.",
    "refusal": "No.",
    "arguments": "{}",
    "partial_image_index": 0,
    "partial_image_b64": "iVBORw==",
    "annotation": {"type": "file_citation", "index": 4, "file_id": "file-1", "filename": "a.txt"},
    "code": ERROR.code,
    "message": ERROR.message,
    "error": ERROR,
}
ITEMS = [
    Message(id="msg_1", status="in_progress", role="assistant", content=[]),
    FunctionCall(id="fc_1", call_id="c", name="f", arguments="", status="in_progress"),
    McpListTools(id="mcpl_1", server_label="w"),
    McpCall(id="mcp_1", server_label="w", name="ask", arguments="", status="in_progress"),
    WebSearchCall(id="ws_1", status="in_progress", action=WebSearchAction(query="cats")),
    FileSearchCall(id="fs_1", status="in_progress", queries=["cats"]),
    ImageGenerationCall(id="ig_1", status="in_progress"),
    CodeInterpreterCall(id="ci_1", status="in_progress", code="", container_id="cntr_1"),
]
PARTS = [OutputText(text=""), RefusalPart(refusal=""), ReasoningText(text="")]


def made(kind: type[BaseModel], **values: Any) -> dict[str, Any]:
    """Make an event of a class, and give what a client gets of it."""
    event = kind.model_validate({name: value for name, value in values.items() if name in kind.model_fields})
    text = EVENT.dump_json(event)  # type: ignore[arg-type]
    assert EVENT.validate_json(text) == event
    body: dict[str, Any] = EVENT.dump_python(event, mode="json")
    return body


def shapes_of(kind: type[BaseModel]) -> list[dict[str, Any]]:
    """List what an event of a class may bear: each item, each part, or the one thing there is."""
    if "item" in kind.model_fields:
        return [{"item": item} for item in ITEMS]
    if "part" in kind.model_fields:
        return (
            [{"part": SummaryText(text="")}]
            if "summary_index" in kind.model_fields
            else [{"part": each} for each in PARTS]
        )
    return [{"response": RESPONSE}]


@pytest.mark.parametrize("index", range(len(CLASSES)))
def test_an_event_is_what_clients_and_the_contract_know(index: int) -> None:
    kind = CLASSES[index]

    for shape in shapes_of(kind):
        body = made(kind, **VALUES, **shape)

        check_event(body, RESPONSE.model_dump(mode="json"))
        assert "obfuscation" not in body


@pytest.mark.parametrize("index", [index for index, kind in enumerate(CLASSES) if "delta" in kind.model_fields])
def test_a_delta_is_padded_when_that_was_asked_for(index: int) -> None:
    assert made(CLASSES[index], **VALUES, obfuscation="xyz")["obfuscation"] == "xyz"


def test_an_error_is_flat_and_nested() -> None:
    body = ErrorEvent.of(ERROR, 7).model_dump(mode="json")

    inner = {"type": "model_error", "code": "model_error", "message": "The model is gone.", "param": ""}
    assert body.pop("error") == inner
    assert body == inner | {"type": "error", "sequence_number": 7}
