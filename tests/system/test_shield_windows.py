"""Output shields that check in windows while the model writes, through the whole system, with the unmodified client."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from llama_stack_client import LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent
from tests.servers import chat_completions as chat
from tests.servers.llama_guard import LlamaGuardServer
from tests.system.run_process import Run

WINDOW = 60
CLEAN = "word " * 200
HELLO: Any = [{"role": "user", "content": "Tell me."}]
SORRY = "Not here."


@pytest.fixture(scope="module")
def model() -> Iterator[LlamaGuardServer]:
    """The model of the agents, by script, and of Llama Guard."""
    with LlamaGuardServer() as server:
        yield server


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory, model: LlamaGuardServer) -> Iterator[LlamaStackClient]:
    shell = {
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "sk-test",
        "STINT_OUTPUT_SHIELD_WINDOW": str(WINDOW),
    }
    run = Run(tmp_path_factory.mktemp("windows") / "state", 0, shell=shell)
    run.read_until("Ctrl-C stops")
    with LlamaStackClient(base_url=run.url) as client:
        phrases: Any = {"phrases": ["take the bomb home"], "user_message": SORRY}
        client.shields.register(shield_id="words", provider_id="deny-list", params=phrases)
        client.shields.register(shield_id="guard", provider_id="llama-guard", provider_shield_id="openai/guard")
        yield client
    run.stop()


@pytest.fixture(autouse=True)
def forget(model: LlamaGuardServer) -> None:
    model.forget()


def open_agent(client: LlamaStackClient, shield: str) -> tuple[Any, str]:
    agent = Agent(client, model="openai/m", instructions="", output_shields=[shield])
    return agent, agent.create_session("windows")


def script(model: LlamaGuardServer, *, wait_for: threading.Event | None = None) -> None:
    """Let the model say much that is harmless, and in a later window what is not."""
    waiting = [wait_for] if wait_for else []
    model.script(chat.stream(*chat.words(CLEAN), *waiting, *chat.words("now take the bomb home and run")))


@pytest.mark.parametrize("shield", ["words", "guard"])
def test_what_passed_leaves_while_the_model_writes_and_what_is_blocked_is_nowhere(
    client: LlamaStackClient, model: LlamaGuardServer, shield: str
) -> None:
    agent, session_id = open_agent(client, shield)
    read = threading.Event()
    script(model, wait_for=read)

    shown, early = [], ""
    for chunk in agent.create_turn(HELLO, session_id=session_id):
        shown.append(chunk.to_json())
        payload = chunk.event.payload
        if payload.event_type == "step_progress":
            early += payload.delta.text
            read.set()
    session = client.agents.session.retrieve(session_id, agent_id=agent.agent_id)

    assert len(early) > WINDOW
    assert CLEAN.startswith(early)
    assert not [event for event in shown if "bomb" in event or "take" in event or "home" in event]
    assert "bomb" not in session.to_json()
    stored: Any = session.to_dict()
    [turn] = stored["turns"]
    answer, screening = turn["steps"]
    assert answer["model_response"]["content"] == early
    assert turn["output_message"]["content"] == screening["violation"]["user_message"]
    assert (turn["output_message"]["stop_reason"], turn["status"]) == ("end_of_turn", "completed")


def test_a_turn_that_is_not_streamed_shows_no_more_of_it(client: LlamaStackClient, model: LlamaGuardServer) -> None:
    agent, session_id = open_agent(client, "words")
    script(model)

    turn = agent.create_turn(HELLO, session_id=session_id, stream=False)
    model.script(chat.stream(*chat.words("Fine.")))
    after = agent.create_turn(HELLO, session_id=session_id, stream=False)

    assert turn.output_message.content == SORRY
    assert "bomb" not in turn.to_json()
    assert after.output_message.content == "Fine."
    assert "bomb" not in str(model.bodies)


def test_llama_guard_is_asked_about_the_answer_from_its_beginning_in_every_window(
    client: LlamaStackClient, model: LlamaGuardServer
) -> None:
    agent, session_id = open_agent(client, "guard")
    model.script(chat.stream(*chat.words(CLEAN)))

    turn = agent.create_turn(HELLO, session_id=session_id, stream=False)

    checks = [prompt for body, prompt in zip(model.bodies, model.prompts, strict=True) if body["model"] == "guard"]
    assert len(checks) >= len(CLEAN) // (2 * WINDOW)
    assert all(
        "'Assistant' messages" in check and "User: Tell me.\n\nAssistant: word word" in check for check in checks
    )
    assert turn.output_message.content == CLEAN
    assert [step.violation for step in turn.steps[1:]] == [None]
