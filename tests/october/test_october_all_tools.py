"""One agent of October 2024 with all six tools, through `make run` without a network, and then the later client."""

import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from llama_stack_client import LlamaStackClient
from tests.october.client import PYTHON, OctoberClient, forms
from tests.october.test_october_memory_tool import memory
from tests.servers import brave, wolfram
from tests.servers.scripted_http import ScriptedHTTPServer
from tests.system.run_process import Run

VECTOR = {"type": "vector", "identifier": "facts", "embedding_model": "hashed/words-384"}
KEYVALUE = {"type": "keyvalue", "identifier": "profiles"}
LLAMAS = {"document_id": "llamas", "content": "Llamas live in Peru.", "metadata": {}}
ANN = {"document_id": "ann", "content": "Ann likes tea.", "metadata": {}}
SHIELD = {"identifier": "words", "type": "deny_list", "params": {"phrases": ["bomb", "snippet"]}}
SHIELDED = {"input_shields": ["words"], "output_shields": ["words"]}
PORTS = {"type": "function_call", "function_name": "get_port", "description": "The port of a city", **SHIELDED} | {
    "parameters": {"city": {"param_type": "string", "description": "The city", "required": True}}
}
TOOLS: list[dict[str, Any]] = [
    {"type": "brave_search", "engine": "brave", "api_key": brave.KEY, **SHIELDED},
    {"type": "wolfram_alpha", "api_key": wolfram.APP_ID, **SHIELDED},
    {"type": "photogen", **SHIELDED},
    {"type": "code_interpreter", **SHIELDED},
    PORTS,
    memory(
        {"type": "vector", "bank_id": "facts"}, {"type": "keyvalue", "bank_id": "profiles", "keys": ["ann"]}, **SHIELDED
    ),
]
CALLS = """Where do llamas live?
call: brave_search {"query": "tea"}
call: wolfram_alpha {"query": "2 + 3"}
call: photogen {"query": "a red fox"}
call: code_interpreter {"code": "print(6 * 7)"}"""


@pytest.fixture(scope="module")
def stint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    if not PYTHON.exists():
        pytest.skip("the client of October 2024 is not installed: make test-october")
    with ScriptedHTTPServer(brave.answer) as search, ScriptedHTTPServer(wolfram.answer) as computing:
        shell = {
            "STINT_BRAVE_BASE_URL": f"{search.url}/res/v1",
            "STINT_WOLFRAM_BASE_URL": f"{computing.url}/v2",
            "STINT_SCRIPTED_WORD_SECONDS": "0",
        }
        run = Run(tmp_path_factory.mktemp("tools"), 0, shell=shell)
        run.read_until("Ctrl-C stops")
        yield run
        run.stop()


def steps_of(turn: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [step for step in turn["steps"] if step["step_type"] == kind]


def fill(october: OctoberClient) -> None:
    for bank, document in ((VECTOR, LLAMAS), (KEYVALUE, ANN)):
        october.call("memory_banks.register", memory_bank=bank)
        october.call("memory.insert", bank_id=bank["identifier"], documents=[document])
    october.call("shields.register", shield=SHIELD)


def test_one_agent_uses_all_six_tools_and_the_later_client_reads_its_session(stint: Run) -> None:
    url = f"http://127.0.0.1:{stint.port}"
    with OctoberClient(url) as october:
        fill(october)
        session = agent_id, session_id = october.open_session(tools=TOOLS)
        first = october.say(session, CALLS)
        second = october.say(session, "get_port of Lima")
        answer = {"role": "ipython", "call_id": "", "tool_name": "get_port", "content": "Callao"}
        third = october.send(session, answer)
        blocked = october.say(session, 'call: brave_search {"query": "a bomb"}')

    check_first(first)
    [call] = second[-1]["turn"]["output_message"]["tool_calls"]
    assert (call["tool_name"], call["arguments"]) == ("get_port", {"city": "Lima"})
    assert "Callao" in third[-1]["turn"]["output_message"]["content"]
    [violation] = [step["violation"] for step in steps_of(blocked[-1]["turn"], "shield_call") if step["violation"]]
    assert violation["violation_level"] == "error"
    with LlamaStackClient(base_url=url, http_client=httpx.Client(trust_env=False)) as later:
        read = later.agents.session.retrieve(session_id, agent_id=agent_id)
    check_later(read)


def check_first(payloads: list[dict[str, Any]]) -> None:
    """Check the turn that retrieves and runs four tools."""
    turn = payloads[-1]["turn"]
    assert forms(payloads)[0] == "turn_start"
    assert forms(payloads)[-1] == "turn_complete"
    [retrieval] = steps_of(turn, "memory_retrieval")
    assert retrieval["memory_bank_ids"] == ["facts", "profiles"]
    assert {line.split(";")[0] for line in retrieval["inserted_context"][1:-1]} == {"id:llamas", "id:ann"}
    answers = {
        response["tool_name"]: response["content"]
        for step in steps_of(turn, "tool_execution")
        for response in step["tool_responses"]
    }
    assert set(answers) == {"brave_search", "wolfram_alpha", "photogen", "code_interpreter"}
    assert "https://example.com/1" in str(answers["brave_search"])
    assert "42" in str(answers["code_interpreter"])
    [image] = turn["output_attachments"]
    assert base64.b64decode(image["content"].partition("base64,")[2]).startswith(b"\x89PNG")


def check_later(session: Any) -> None:
    """Check the same session as client 0.2.12 reads it."""
    first, second, third, blocked = session.turns
    kinds = [step.step_type for step in first.steps]
    assert kinds.count("tool_execution") >= 1
    assert {"memory_retrieval", "inference"} <= set(kinds)
    assert first.output_attachments[0].mime_type == "image/png"
    [answer] = [step.api_model_response for step in second.steps if step.step_type == "inference"]
    assert [call.tool_name for call in answer.tool_calls] == ["get_port"]
    assert "Callao" in str(third.output_message.content)
    assert "shield_call" in [step.step_type for step in blocked.steps]
