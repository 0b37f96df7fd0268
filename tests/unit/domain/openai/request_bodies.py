"""Request bodies and items that clients send, and JSON of any shape."""

from typing import Any

from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from stint.domain.inference import Reasoning
from stint.domain.openai.opaque import CompactedContext, SigningKey, encode_opaque

Json = dict[str, Any]
KEY = SigningKey("tenant", b"k" * 32)
THOUGHT = encode_opaque(Reasoning(text="Cats, then.", signature="s"), KEY)
SUMMARY = encode_opaque(CompactedContext(summary="They spoke of cats."), KEY)
IMAGE = "data:image/png;base64,iVBORw0KGgo="
INPUT_ITEMS: list[Json] = [
    {"role": "user", "content": "Hi."},
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
    {"role": "assistant", "content": "Hello."},
    {"type": None, "role": "assistant", "content": [{"type": "input_text", "text": "Hello."}]},
    {"type": "message", "id": None, "status": None, "role": "user", "content": [{"type": "input_text", "text": "Hi."}]},
    {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": IMAGE, "detail": None}]},
    {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": IMAGE, "file_id": None}]},
    {"type": "message", "role": "user", "content": [{"type": "input_file", "file_url": "https://a.example/b.pdf"}]},
    {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_file", "filename": "a.txt", "file_data": "SGk=", "file_url": None}],
    },
    {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hello.", "annotations": [], "logprobs": None}],
        "phase": "final_answer",
    },
    {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
    {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": "{}"},
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "get_weather",
        "arguments": "{}",
        "status": "completed",
        "caller": None,
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "4"},
    {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "4"}], "id": None},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Cats."}],
        "content": [{"type": "reasoning_text", "text": "Cats, then."}],
        "encrypted_content": THOUGHT,
        "status": None,
    },
    {"type": "reasoning", "summary": [], "content": None, "encrypted_content": None},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": SUMMARY},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "wiki", "tools": [{"name": "ask", "input_schema": {}}]},
    {"type": "mcp_call", "id": "mcp_1", "server_label": "wiki", "name": "ask", "arguments": "{}", "output": "5"},
    {"type": "mcp_call", "id": "mcp_1", "server_label": "wiki", "name": "ask", "arguments": "{}", "error": "Gone."},
    {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "wiki", "name": "ask", "arguments": "{}"},
    {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True, "reason": None},
    {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "cats", "sources": [{"type": "url", "url": "https://a.example"}]},
    },
    {
        "type": "file_search_call",
        "id": "fs_1",
        "status": "completed",
        "queries": ["cats"],
        "results": [
            {"file_id": "file-1", "filename": "cats.txt", "score": 0.5, "attributes": {"a": 1}, "text": "Meow."}
        ],
    },
    {"type": "file_search_call", "queries": [], "results": None},
    {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw==", "size": "64x64"},
    {"type": "image_generation_call", "id": "ig_1", "status": "failed", "result": None},
]
REFERENCES: list[Json] = [
    {"type": "item_reference", "id": "msg_1"},
    {"id": "msg_1"},
    {"type": None, "id": "msg_1"},
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=6,
)
"""Strategy of small JSON values."""


def bodies_near(valid: Json) -> st.SearchStrategy[Json]:
    """Return a strategy of bodies with any JSON in some fields of a valid one."""
    return st.fixed_dictionaries({}, optional={name: st.just(value) | JSON for name, value in valid.items()})


def items_near() -> st.SearchStrategy[Json]:
    """Return a strategy of items with any JSON in some fields of valid ones."""
    return st.sampled_from([*INPUT_ITEMS, *REFERENCES]).flatmap(bodies_near)


def check_refusal(kind: type[BaseModel], body: object) -> None:
    """Assert that every validation error of a body names a field, unless the body is not an object."""
    try:
        kind.model_validate(body)
    except ValidationError as error:
        places = [problem["loc"] for problem in error.errors()]
        assert places
        assert all(places) or not isinstance(body, dict)
