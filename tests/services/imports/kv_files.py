"""Files as Llama Stack servers write them: one sqlite table of keys and JSON values."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

AGENT = "5330a590-47c0-4cec-8460-f7268f7797f2"
SESSION = "33cc68c4-ca7f-4b5d-9ba1-1630741e7af0"
FIRST, SECOND, THIRD = (
    "f7ef9614-7bd1-4833-b0ba-97b011f32ad8",
    "a1236d1a-3027-48ef-9772-5c6622664190",
    "0ea5e4a9-7a44-4757-b844-d07fa14d7909",
)
CALL = {
    "call_id": "call_1",
    "tool_name": "get_boiling_point",
    "arguments": {"liquid_name": "polyjuice"},
    "arguments_json": '{"liquid_name": "polyjuice"}',
}


NO_SHIELDS: dict[str, Any] = {"input_shields": [], "output_shields": [], "remote_execution": None}


def agent_value(**fields: Any) -> dict[str, Any]:
    """Return the value of an agent of 0.2.12."""
    return {
        "sampling_params": {
            "strategy": {"type": "greedy"},
            "max_tokens": 0,
            "repetition_penalty": 1.0,
            "stop": None,
        },
        "input_shields": [],
        "output_shields": [],
        "toolgroups": [],
        "client_tools": [],
        "tool_choice": None,
        "tool_prompt_format": None,
        "tool_config": {"tool_choice": "auto", "tool_prompt_format": None, "system_message_behavior": "append"},
        "max_infer_iters": 10,
        "model": "test/m",
        "instructions": "Answer briefly.",
        "name": None,
        "enable_session_persistence": True,
        "response_format": None,
        "created_at": "2026-11-22T01:01:44.778282Z",
    } | fields


def october_agent(*tools: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the value of an agent of October 2024."""
    sampling = {"strategy": "greedy", "temperature": 1.0, "top_p": 0.9, "top_k": 0, "max_tokens": 0}
    return {
        "sampling_params": sampling | {"repetition_penalty": 1.0},
        "input_shields": [],
        "output_shields": [],
        "tools": [{**NO_SHIELDS, **tool} for tool in tools],
        "tool_choice": "auto",
        "tool_prompt_format": "json",
        "max_infer_iters": 5,
        "model": "test/m",
        "instructions": "You are a helpful assistant",
        "enable_session_persistence": True,
    } | fields


def session_value(session_id: str = SESSION, **fields: Any) -> dict[str, Any]:
    return {
        "session_id": session_id,
        "session_name": "talk",
        "turns": [],
        "started_at": "2026-11-22T01:01:46.508124Z",
        "vector_db_id": None,
        "owner": {"principal": "", "attributes": {}},
        "identifier": "talk",
        "type": "session",
    } | fields


def turn_value(turn_id: str, text: str, answer: str, second: int, **fields: Any) -> dict[str, Any]:
    """Return the value of a turn with one answer, which started at a second of the minute."""
    time = f"2026-11-22T01:02:{second:02d}"
    message = {"role": "assistant", "content": answer, "stop_reason": "end_of_turn", "tool_calls": []}
    step = {
        "turn_id": turn_id,
        "step_id": "ff4a901f-0a4f-41b1-b7d0-f6f81973d2c4",
        "started_at": f"{time}.573675Z",
        "completed_at": f"{time}.671896Z",
        "step_type": "inference",
        "model_response": message,
    }
    return {
        "turn_id": turn_id,
        "session_id": SESSION,
        "input_messages": [{"role": "user", "content": text, "context": None}],
        "steps": [step],
        "output_message": message,
        "output_attachments": [],
        "started_at": f"{time}.567887Z",
        "completed_at": f"{time}.682597Z",
    } | fields


def waiting_turn(turn_id: str, second: int) -> dict[str, Any]:
    """Return the value of a turn whose client has not sent the result of a call."""
    turn = turn_value(turn_id, "Boil it.", "", second)
    turn["steps"][0]["model_response"] = turn["output_message"] | {"tool_calls": [CALL]}
    return turn


def october_turn(turn_id: str, second: int) -> dict[str, Any]:
    """Return the value of a turn of October 2024: times without a zone, and steps without times."""
    turn = turn_value(turn_id, "What is it?", "Paris.", second)
    steps = [
        {
            "step_type": "memory_retrieval",
            "step_id": "713eebb0-b8fb-4d01-8973-6426265f3ff2",
            "memory_bank_ids": ["bank1", "bank2"],
            "inserted_context": ["Retrieved:", "id:doc-2; content:Paris."],
        },
        turn["steps"][0],
    ]
    return turn | {
        "input_messages": [
            {"role": "user", "content": ["See", {"image": {"uri": "https://example.com/a.png"}}], "context": "c"},
            {"role": "ipython", "call_id": "", "tool_name": "get_boiling_point", "content": ["-", "1"]},
        ],
        "steps": [step | {"turn_id": turn_id, "started_at": None, "completed_at": None} for step in steps],
        "started_at": f"2026-11-22T01:02:{second:02d}.567887",
        "completed_at": f"2026-11-22T01:02:{second:02d}.682597",
    }


def session_rows(*turns: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the rows of an agent with one session and these turns."""
    rows = {f"agent:{AGENT}": agent_value(), f"session:{AGENT}:{SESSION}": session_value(**fields)}
    return rows | {f"session:{AGENT}:{SESSION}:{turn['turn_id']}": turn for turn in turns}


def write_kv_file(path: Path, rows: Mapping[str, Any], table: str = "kvstore") -> Path:
    """Write a file. Values that are texts or bytes are written as they are."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"CREATE TABLE {table} (key TEXT PRIMARY KEY, value TEXT, expiration TIMESTAMP)")
        for key, value in rows.items():
            stored = value if isinstance(value, str | bytes) else json.dumps(value)
            connection.execute(f"INSERT INTO {table} VALUES (?, ?, NULL)", (key, stored))
        connection.commit()
    return path
