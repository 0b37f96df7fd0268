"""Tools, shields, documents and structured output where something is in the way, through the whole system."""

import base64
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import llama_stack_client
import pytest
from infra.local.engine import ROOT
from infra.local.server import listen
from llama_stack_client import AsyncLlamaStackClient, LlamaStackClient
from llama_stack_client.lib.agents.agent import Agent, AsyncAgent
from llama_stack_client.lib.agents.client_tool import client_tool
from tests.servers import brave, tavily
from tests.servers.chat_completions import ChatCompletionsServer, stream, tool_call, words
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer
from tests.system.run_process import Run

HELLO: Any = [{"role": "user", "content": "Hello"}]
FOUR_CALLS = [
    ("call_http", "add", '{"a": 2, "b": 3}'),
    ("call_user", "ask_user", '{"question": "sure?"}'),
    ("call_sse", "total", '{"numbers": [1, 2, 4]}'),
    ("call_lambda", "boiling_point", '{"liquid": "polyjuice"}'),
]


def closed_port() -> int:
    """Return a port at which no server listens."""
    with listen() as listener:
        port: int = listener.getsockname()[1]
        return port


@client_tool
def ask_user(question: str) -> str:
    """Ask the user.

    :param question: what to ask
    """
    return f"yes to {question}"


@dataclass(frozen=True)
class McpProcess:
    process: subprocess.Popen[str]
    url: str

    def seen(self, what: str) -> int:
        stats: dict[str, int] = httpx.get(f"{self.url}/stats", trust_env=False, timeout=120).json()
        return stats.get(what, 0)


@pytest.fixture(scope="module")
def start_mcp() -> Iterator[Callable[[], McpProcess]]:
    started: list[McpProcess] = []

    def start() -> McpProcess:
        command = [sys.executable, "-m", "tests.servers.mcp_server"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout
        started.append(McpProcess(process, f"http://127.0.0.1:{process.stdout.readline().strip()}"))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


@pytest.fixture(scope="module")
def mcp(start_mcp: Callable[[], McpProcess]) -> McpProcess:
    return start_mcp()


@pytest.fixture(scope="module")
def model() -> Iterator[ChatCompletionsServer]:
    with ChatCompletionsServer() as server:
        yield server


@pytest.fixture
def endpoint() -> Iterator[ScriptedHTTPServer]:
    def answer(received: Received) -> Reply:
        return Reply((received.body,))

    with ScriptedHTTPServer(answer) as server:
        yield server


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, ScriptedHTTPServer]]:
    with ScriptedHTTPServer(tavily.answer) as of_tavily, ScriptedHTTPServer(brave.answer) as of_brave:
        yield {"tavily": of_tavily, "brave": of_brave}


@pytest.fixture
def search_engines(engines: dict[str, ScriptedHTTPServer]) -> dict[str, ScriptedHTTPServer]:
    for engine in engines.values():
        engine.forget()
    return engines


@pytest.fixture(scope="module")
def run(
    tmp_path_factory: pytest.TempPathFactory, model: ChatCompletionsServer, engines: dict[str, ScriptedHTTPServer]
) -> Iterator[Run]:
    shell = {
        "STINT_TAVILY_BASE_URL": engines["tavily"].url,
        "STINT_BRAVE_BASE_URL": f"{engines['brave'].url}/res/v1",
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "sk-test",
        "STINT_LEASE_SECONDS": "3",
        "STINT_SCRIPTED_WORD_SECONDS": "0",
    }
    run = Run(tmp_path_factory.mktemp("run") / "state", 0, shell=shell)
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


@pytest.fixture(scope="module")
def client(run: Run, mcp: McpProcess) -> Iterator[LlamaStackClient]:
    with LlamaStackClient(base_url=run.url) as client:
        register_mcp(client, "mcp::http", f"{mcp.url}/mcp")
        register_mcp(client, "mcp::sse", f"{mcp.url}/sse")
        parameters = {"type": "object", "properties": {"liquid": {"type": "string"}}, "required": ["liquid"]}
        tool = {"name": "boiling_point", "function": "get-boiling-point", "parameters": parameters}
        tools: Any = {"tools": [{**tool, "description": "Boiling point of a liquid."}]}
        client.toolgroups.register(toolgroup_id="lab", provider_id="lambda-function", args=tools)
        yield client


def register_mcp(client: LlamaStackClient, name: str, url: str) -> None:
    client.toolgroups.register(toolgroup_id=name, provider_id="model-context-protocol", mcp_endpoint={"uri": url})


def register_http(client: LlamaStackClient, name: str, url: str) -> None:
    """Register a toolgroup with one tool that gives up after a second."""
    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    tool = {"name": name, "description": "Asks a server.", "url": url, "method": "POST", "parameters": parameters}
    args: Any = {"tools": [{**tool, "timeout": 1}]}
    client.toolgroups.register(toolgroup_id=name, provider_id="remote-execution", args=args)


def make_place(client: LlamaStackClient, **config: Any) -> dict[str, Any]:
    """Make an agent and a session: the ids by which the client names them."""
    complete: Any = {"model": "scripted/demo", "instructions": "", "enable_session_persistence": True, **config}
    agent_id = client.agents.create(agent_config=complete).agent_id
    session_id = client.agents.session.create(agent_id, session_name="tools").session_id
    return {"agent_id": agent_id, "session_id": session_id}


def take_turn(client: LlamaStackClient, place: dict[str, Any], text: str, **more: Any) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return client.agents.turn.create(**place, messages=messages, stream=False, **more)


def responses_of(turn: Any) -> list[Any]:
    return [response for step in turn.steps if step.step_type == "tool_execution" for response in step.tool_responses]


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(item.text for item in content if item.type == "text")


def kill_turns(run: Run) -> int:
    """Kill -9 the processes of this run's streaming functions; tell how many there were."""
    table = subprocess.run(["ps", "-ww", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in table.splitlines()]
    found = [int(pid) for pid, parent, args in rows if int(parent) == run.process.pid and "stint_runtime" in args]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return len(found)


def is_accepted(client: LlamaStackClient, place: dict[str, Any]) -> bool:
    """Take a turn, unless the session is held by one whose process died a moment ago."""
    try:
        return bool(take_turn(client, place, "Are you still there?").status == "completed")
    except llama_stack_client.ConflictError:
        return False


def wait_until(condition: Callable[[], Any], within: float = 60) -> None:
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("killed", [False, True], ids=["same process", "killed in the pause"])
def test_an_agent_streams_a_turn_with_tools_of_every_kind_at_once(
    client: LlamaStackClient, run: Run, model: ChatCompletionsServer, killed: bool
) -> None:
    model.forget()
    calls = [delta for index, call in enumerate(FOUR_CALLS) for delta in tool_call(*call, index=index)]
    model.script(
        stream(*words("Let me see. "), *calls, finish="tool_calls"), stream(*words("All known."), finish="stop")
    )
    tools: Any = ["mcp::http/add", "mcp::sse/total", "lab", ask_user]
    agent = Agent(client, model="openai/gpt-test", instructions="", tools=tools, enable_session_persistence=True)
    session_id = agent.create_session("at once")

    question: Any = [{"role": "user", "content": "Do it all."}]
    payloads: list[Any] = []
    chunks: Any = agent.create_turn(question, session_id=session_id)
    for chunk in chunks:
        payloads.append(chunk.event.payload)
        if killed and payloads[-1].event_type == "turn_awaiting_input":
            assert kill_turns(run)

    kinds = [(p.event_type, getattr(p, "step_type", "")) for p in payloads if p.event_type != "step_progress"]
    inference = [("step_start", "inference"), ("step_complete", "inference")]
    server_tools = [("step_start", "tool_execution")] * 3 + [("step_complete", "tool_execution")] * 3
    assert kinds[:3] == [("turn_start", ""), *inference]
    assert sorted(kinds[3:9]) == sorted(server_tools)
    assert kinds[9:11] == [("turn_awaiting_input", ""), ("step_complete", "tool_execution")]
    assert kinds[11:] == [*inference, ("turn_complete", "")]
    finished = [p.step_details for p in payloads[3:] if p.event_type == "step_complete"]
    answered = [step.tool_responses[0].call_id for step in finished if step.step_type == "tool_execution"]
    assert answered == ["call_http", "call_sse", "call_lambda", "call_user"]
    turn = payloads[-1].turn
    assert turn.output_message.content == "All known."
    stored: Any = client.agents.turn.retrieve(turn.turn_id, agent_id=agent.agent_id, session_id=session_id)
    assert stored == turn
    assert len({step.step_id for step in stored.steps}) == len(stored.steps) == 6
    assert stored.steps[0].api_model_response.content == "Let me see. "
    messages = model.bodies[-1]["messages"]
    assert [call["id"] for call in messages[1]["tool_calls"]] == [call_id for call_id, *_ in FOUR_CALLS]
    told = {message["tool_call_id"]: json.dumps(message["content"]) for message in messages[2:]}
    assert set(told) == {call_id for call_id, *_ in FOUR_CALLS}
    assert "-100" in told["call_lambda"]
    assert "yes to sure?" in told["call_user"]


def test_a_turn_whose_process_dies_in_a_tool_is_failed_and_the_session_goes_on(
    client: LlamaStackClient, run: Run, mcp: McpProcess
) -> None:
    place = make_place(client, toolgroups=["mcp::http/sleep"])
    once = client.with_options(max_retries=0)
    sleeping = mcp.seen("sleeping")
    cut: list[Exception] = []

    def take() -> None:
        try:
            take_turn(once, place, 'call: sleep {"seconds": 20}')
        except llama_stack_client.APIError as error:
            cut.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    wait_until(lambda: mcp.seen("sleeping") > sleeping)
    assert kill_turns(run)
    thread.join()
    wait_until(lambda: is_accepted(client, place))

    assert cut
    turns: Any = client.agents.session.retrieve(place["session_id"], agent_id=place["agent_id"]).turns
    assert [turn.status for turn in turns] == ["failed", "completed"]
    assert [step.step_type for step in turns[0].steps] == ["inference"]


def test_a_server_that_dies_in_a_call_is_a_result_that_names_it(
    client: LlamaStackClient, start_mcp: Callable[[], McpProcess]
) -> None:
    doomed = start_mcp()
    register_mcp(client, "mcp::doomed", f"{doomed.url}/mcp")
    place = make_place(client, toolgroups=["mcp::doomed/sleep"])
    turns: list[Any] = []
    thread = threading.Thread(target=lambda: turns.append(take_turn(client, place, 'call: sleep {"seconds": 20}')))

    thread.start()
    wait_until(lambda: doomed.seen("sleeping"))
    doomed.process.kill()
    doomed.process.wait()
    thread.join()

    (response,) = responses_of(turns[0])
    assert response.metadata["error"] is True
    assert turns[0].status == "completed"
    assert doomed.url.removeprefix("http://") in text_of(response.content)


def test_a_server_that_is_away_when_tools_are_listed_is_named_before_the_stream(client: LlamaStackClient) -> None:
    register_mcp(client, "mcp::away", f"http://127.0.0.1:{closed_port()}/mcp")
    place = make_place(client, toolgroups=["mcp::away"])

    with pytest.raises(llama_stack_client.InternalServerError, match=r"127\.0\.0\.1") as refused:
        client.agents.turn.create(**place, messages=HELLO, stream=True)

    assert refused.value.status_code == 502
    assert client.tools.list()
    session: Any = client.agents.session.retrieve(place["session_id"], agent_id=place["agent_id"])
    assert session.turns == []


def test_a_tool_of_a_server_that_is_away_is_not_called_unknown(client: LlamaStackClient, mcp: McpProcess) -> None:
    once = client.with_options(max_retries=0)
    register_mcp(client, "mcp::nobody", f"http://127.0.0.1:{closed_port()}/mcp")

    with pytest.raises(llama_stack_client.InternalServerError, match="mcp::nobody") as refused:
        once.tool_runtime.invoke_tool(tool_name="only_there", kwargs={})
    boiling: Any = once.tool_runtime.invoke_tool(tool_name="boiling_point", kwargs={"liquid": "polyjuice"})
    client.toolgroups.unregister("mcp::nobody")

    assert refused.value.status_code == 502
    assert "-100" in text_of(boiling.content)


def test_a_turn_goes_on_with_the_old_list_of_a_server_that_went_down(
    client: LlamaStackClient, start_mcp: Callable[[], McpProcess]
) -> None:
    doomed = start_mcp()
    register_mcp(client, "mcp::was", f"{doomed.url}/mcp")
    place = make_place(client, toolgroups=["mcp::was/add"])
    first = take_turn(client, place, 'call: add {"a": 1, "b": 2}')
    doomed.process.kill()
    doomed.process.wait()

    second = take_turn(client, place, 'call: add {"a": 1, "b": 2}')

    assert [text_of(response.content) for response in responses_of(first)] == ["3"]
    (response,) = responses_of(second)
    assert (second.status, response.metadata["error"]) == ("completed", True)
    assert doomed.url.removeprefix("http://") in text_of(response.content)


def test_the_tools_of_a_server_that_is_not_registered_are_listed(client: LlamaStackClient, mcp: McpProcess) -> None:
    listed = client.tool_runtime.list_tools(mcp_endpoint={"uri": f"{mcp.url}/mcp"})
    named = client.tool_runtime.list_tools(mcp_endpoint={"uri": f"{mcp.url}/sse"}, tool_group_id="mcp::trial")

    assert {"add", "order"} <= {tool.name for tool in listed}
    assert [tool.name for tool in named] == [tool.name for tool in listed]
    assert "mcp::trial" not in [group.identifier for group in client.toolgroups.list()]


def test_an_mcp_registration_has_time_outs_of_its_own(client: LlamaStackClient, mcp: McpProcess) -> None:
    client.toolgroups.register(
        toolgroup_id="mcp::hasty",
        provider_id="model-context-protocol",
        mcp_endpoint={"uri": f"{mcp.url}/mcp"},
        args={"timeouts": {"sleep": 0.5}},
    )
    place = make_place(client, toolgroups=["mcp::hasty/sleep"])

    turn = take_turn(client, place, 'call: sleep {"seconds": 20}')

    (response,) = responses_of(turn)
    assert "within 0.5 s" in text_of(response.content)


@pytest.mark.parametrize("engine", ["tavily", "brave"])
def test_a_turn_searches_the_web(
    client: LlamaStackClient, run: Run, search_engines: dict[str, ScriptedHTTPServer], engine: str
) -> None:
    key = {"tavily": tavily.KEY, "brave": brave.KEY}[engine]
    client.toolgroups.register(toolgroup_id=f"web::{engine}", provider_id=f"{engine}-search")
    keys = {"X-LlamaStack-Provider-Data": json.dumps({f"{engine}_search_api_key": key})}
    tools: Any = [f"web::{engine}"]
    agent = Agent(client, model="scripted/demo", instructions="", tools=tools, extra_headers=keys)
    question: Any = [{"role": "user", "content": 'call: brave_search {"query": "tea"}'}]

    turn: Any = agent.create_turn(question, session_id=agent.create_session("web"), stream=False)
    invoked: Any = client.tool_runtime.invoke_tool(
        tool_name=f"web::{engine}/web_search",
        kwargs={"query": "tea", "max_results": 1},
        extra_headers=keys,
    )

    (response,) = responses_of(turn)
    found = json.loads(text_of(response.content))
    assert response.tool_name == "brave_search"
    assert found["query"] == "tea"
    assert [hit["url"] for hit in found["top_k"]] == [f"https://example.com/{number}" for number in (1, 2, 3)]
    assert len(json.loads(text_of(invoked.content))["top_k"]) == 1
    assert len(search_engines[engine].requests) == 2
    client.toolgroups.unregister(f"web::{engine}")


def test_the_configured_search_is_tavilys_and_a_registration_may_take_its_place(
    client: LlamaStackClient, search_engines: dict[str, ScriptedHTTPServer]
) -> None:
    keys = {"tavily_search_api_key": tavily.KEY, "brave_search_api_key": brave.KEY}
    headers = {"X-LlamaStack-Provider-Data": json.dumps(keys)}
    place = make_place(client, toolgroups=["builtin::websearch"])

    def search() -> str:
        result: Any = client.tool_runtime.invoke_tool(
            tool_name="builtin::websearch/web_search", kwargs={"query": "tea"}, extra_headers=headers
        )
        return text_of(result.content)

    turn = take_turn(client, place, 'call: brave_search {"query": "tea"}', extra_headers=headers)
    client.toolgroups.register(toolgroup_id="builtin::websearch", provider_id="brave-search")
    instead = search()
    client.toolgroups.unregister("builtin::websearch")
    again = search()

    scores = ["score" in text for text in (text_of(responses_of(turn)[0].content), instead, again)]
    assert scores == [True, False, True]
    assert [len(search_engines[name].requests) for name in ("tavily", "brave")] == [2, 1]


def test_slow_failing_unknown_and_long_winded_tools_are_results_side_by_side(
    client: LlamaStackClient, endpoint: ScriptedHTTPServer
) -> None:
    endpoint.script(Reply(before=5.0))
    register_http(client, "slow", f"{endpoint.url}/slow")
    place = make_place(client, toolgroups=["slow", "mcp::http/boom", "mcp::http/big"])
    calls = ['slow {"text": "x"}', 'boom {"why": "no"}', "nowhere {}", "boom not json", 'big {"size": 700000}']

    turn = take_turn(client, place, "\n".join(f"call: {call}" for call in calls))

    slow, boom, nowhere, broken, big = responses_of(turn)
    assert "within 1 s" in text_of(slow.content)
    assert "boom: no" in text_of(boom.content)
    assert "no tool named 'nowhere'" in text_of(nowhere.content)
    assert "not a JSON object" in text_of(broken.content)
    assert all(response.metadata["error"] for response in (slow, boom, nowhere, broken))
    assert "was truncated" in text_of(big.content)
    assert 256_000 <= len(text_of(big.content)) < 257_000
    assert big.metadata["full_result"]
    assert turn.status == "completed"


def test_a_toolgroups_args_win_over_the_models(client: LlamaStackClient) -> None:
    place = make_place(client, toolgroups=[{"name": "mcp::http/add", "args": {"a": 100}}])

    fixed = take_turn(client, place, 'call: add {"a": 1, "b": 2}')
    fixed_by_turn = take_turn(
        client, place, 'call: add {"a": 1, "b": 2}', toolgroups=[{"name": "mcp::http/add", "args": {"b": 900}}]
    )

    assert [text_of(response.content) for response in responses_of(fixed)] == ["102"]
    assert [text_of(response.content) for response in responses_of(fixed_by_turn)] == ["1000"]


async def test_an_async_agent_with_fixed_args_lists_and_uses_its_tools(client: LlamaStackClient, run: Run) -> None:
    tools: Any = [{"name": "mcp::sse/total", "args": {"numbers": [20, 3]}}, ask_user]
    async with AsyncLlamaStackClient(base_url=run.url) as asynchronous:
        agent = AsyncAgent(asynchronous, model="scripted/demo", instructions="", tools=tools)  # type: ignore[arg-type]  # the library names the other client
        session_id = await agent.create_session("async")
        question: Any = [{"role": "user", "content": 'call: total {}\ncall: ask_user {"question": "why?"}'}]
        turn: Any = await agent.create_turn(question, session_id=session_id, stream=False)

    assert list(agent.builtin_tools) == ["total"]
    total, asked = responses_of(turn)
    assert "23" in text_of(total.content)
    assert asked.content == '"yes to why?"'


def test_a_toolgroup_that_was_unregistered_is_gone_by_name(client: LlamaStackClient, mcp: McpProcess) -> None:
    register_mcp(client, "mcp::gone", f"{mcp.url}/json/mcp")
    place = make_place(client, toolgroups=["mcp::gone"])
    listed: Any = client.tool_runtime.list_tools(tool_group_id="mcp::gone")
    assert {tool.identifier for tool in listed} >= {"add", "order"}

    client.toolgroups.unregister("mcp::gone")

    with pytest.raises(llama_stack_client.NotFoundError):
        client.toolgroups.get("mcp::gone")
    with pytest.raises(llama_stack_client.NotFoundError):
        client.tools.list(toolgroup_id="mcp::gone")
    assert "mcp::gone" not in [group.identifier for group in client.toolgroups.list()]
    with pytest.raises(llama_stack_client.BadRequestError, match="mcp::gone"):
        take_turn(client, place, "Hello")


def test_an_input_shield_ends_the_turn_without_the_model(client: LlamaStackClient) -> None:
    client.shields.register(
        shield_id="no-poison", provider_id="deny-list", params={"phrases": ["poison"], "user_message": "Not that."}
    )
    place = make_place(client, input_shields=["no-poison"])

    turn = take_turn(client, place, "Tell me of poison")
    messages: Any = [{"role": "user", "content": "Tell me of bread"}]
    passed = client.safety.run_shield(shield_id="no-poison", messages=messages, params={})

    assert [step.step_type for step in turn.steps] == ["shield_call"]
    assert turn.steps[0].violation.violation_level == "error"
    assert turn.output_message.content == "Not that."
    assert passed.violation is None


def test_an_unknown_shield_is_refused_before_the_stream(client: LlamaStackClient) -> None:
    place = make_place(client, output_shields=["nobody"])

    with pytest.raises(llama_stack_client.BadRequestError, match="nobody"):
        client.agents.turn.create(**place, messages=HELLO, stream=True)


def test_documents_reach_the_model_and_the_users_message_stays_as_it_was(
    client: LlamaStackClient, model: ChatCompletionsServer, endpoint: ScriptedHTTPServer
) -> None:
    endpoint.script(Reply((b"<p>from <b>HTML</b></p>",), headers={"Content-Type": "text/html"}))
    encoded = base64.b64encode("from a data URL: é".encode()).decode()
    documents: Any = [
        {"content": "from text", "mime_type": "text/plain"},
        {"content": {"uri": f"data:text/plain;charset=utf-8;base64,{encoded}"}, "mime_type": "text/plain"},
        {"content": {"uri": f"{endpoint.url}/page"}, "mime_type": "text/html"},
    ]
    place = make_place(client, model="openai/gpt-test")
    model.forget()

    turn = take_turn(client, place, "Read.", documents=documents)
    take_turn(client, place, "Again.")

    assert turn.input_messages[0].content == "Read."
    for body in model.bodies:
        said = json.dumps(body["messages"], ensure_ascii=False)
        assert all(text in said for text in ("from text", "from a data URL: é", "from HTML"))


@pytest.mark.parametrize(
    "uri",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://10.0.0.1/",
        "file:///etc/passwd",
    ],
)
def test_a_document_that_is_not_public_is_refused_and_the_session_stays_free(
    client: LlamaStackClient, uri: str
) -> None:
    place = make_place(client)

    with pytest.raises(llama_stack_client.BadRequestError, match=r"documents\[0\]"):
        take_turn(client, place, "Read.", documents=[{"content": {"uri": uri}, "mime_type": "text/plain"}])

    assert take_turn(client, place, "Hello").status == "completed"


def test_an_answer_has_the_form_that_was_asked_for(client: LlamaStackClient) -> None:
    properties = {"name": {"type": "string"}, "size": {"enum": ["small", "large"]}, "count": {"type": "integer"}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    place = make_place(client, response_format={"type": "json_schema", "json_schema": schema})

    answer = json.loads(take_turn(client, place, "name=Ann count=3 size=large").output_message.content)

    assert set(answer) == set(properties)
    assert answer["size"] in ("small", "large")
    assert isinstance(answer["count"], int)
