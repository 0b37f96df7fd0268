import asyncio
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from infra.local.engine import ROOT
from infra.local.errors import LocalCloudError
from infra.local.server import listen
from infra.local.state import State
from starlette.routing import Route
from tests.servers.chat_completions import ChatCompletionsServer, document, error
from tests.servers.chat_completions import answer as answer_chat
from tests.servers.scripted_http import Received, Reply, ScriptedHTTPServer
from tests.system.run_process import Run, all_end, clean_shell

from stint.domain.principals import ANONYMOUS
from stint.http.unknown_routes import BASE_URL
from stint.october_2024.routes.parts import list_october_parts

Start = Callable[..., Run]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """One that the tests share which only ask it."""
    run = Run(tmp_path_factory.mktemp("running"), 0)
    run.read_until("Ctrl-C stops")
    yield run
    run.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    runs: list[Run] = []

    def start(
        *options: str,
        port: int | None = None,
        state: Path = tmp_path / "state",
        shell: dict[str, str] | None = None,
        tools: Path | None = None,
    ) -> Run:
        """With a port of its own it is awaited; with a given one the test looks at what happens."""
        run = Run(state, port or 0, *options, shell=shell, tools=tools)
        runs.append(run)
        if port is None:
            run.read_until("Ctrl-C stops")
        return run

    yield start
    for run in runs:
        if run.process.returncode is None:
            run.stop()


def children_of(process: int) -> set[int]:
    """Every process below this one."""
    table = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(pid): int(parent) for pid, parent in (line.split() for line in table.splitlines())}
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in found | {process}} - found:
        found |= more
    return found


def get_agent(url: str, agent: str) -> int:
    return httpx.get(f"{url}/v1/agents/{agent}", trust_env=False, timeout=120).status_code


def create_agent(url: str) -> str:
    config = {"model": "scripted/demo", "instructions": "Answer briefly."}
    response = httpx.post(f"{url}/v1/agents", json={"agent_config": config}, trust_env=False, timeout=120)
    assert response.status_code == 200, response.text
    return str(response.json()["agent_id"])


def test_it_says_when_it_is_ready_and_its_curl_works_as_printed(running: Run) -> None:
    assert re.search(r"ready in [\d.]+ s", "".join(running.lines))
    command = next(line for line in running.lines if line.lstrip().startswith("curl"))

    answer = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True, timeout=120).stdout

    assert "scripted/demo" in "".join(running.lines)
    assert json.loads(answer)["output"][0]["content"][0]["text"]


def test_signals_leave_no_process_and_state_is_kept_until_it_is_cleared(start: Start) -> None:
    first = start()
    agent = create_agent(first.url)
    processes = children_of(first.process.pid)
    interrupted = first.stop(signal.SIGINT)
    first_ended = all_end(processes, within=5)

    second = start()
    kept = get_agent(second.url, agent)
    processes |= children_of(second.process.pid)
    terminated = second.stop(signal.SIGTERM)
    second_ended = all_end(processes, within=5)

    third = start("--fresh")
    cleared = get_agent(third.url, agent)

    assert len(processes) >= 6
    assert (interrupted, first_ended, kept) == (0, True, 200)
    assert (terminated, second_ended, cleared) == (0, True, 404)
    assert third.lines[0] == f"FRESH=1: the data in {third.state} was deleted\n"
    assert not any("FRESH=1:" in line for line in first.lines + second.lines)
    assert f"(to start empty: STATE={third.state} FRESH=1 make run)" in "".join(third.lines)


def test_a_process_killed_hard_leaves_no_other(start: Start) -> None:
    run = start()
    create_agent(run.url)
    started = children_of(run.process.pid)

    run.stop(signal.SIGKILL)

    assert all_end(started, within=10)


def test_a_start_right_after_a_kill_has_the_data_of_the_last_session(start: Start) -> None:
    first = start()
    agent = create_agent(first.url)
    engine = engine_of(first)
    os.kill(engine, signal.SIGSTOP)  # it saves its state for as long as the test wants
    first.stop(signal.SIGKILL)
    threading.Timer(2, os.kill, (engine, signal.SIGCONT)).start()

    second = start()

    assert all_end({engine}, within=5)
    assert get_agent(second.url, agent) == 200


def test_an_engine_killed_while_it_saves_is_an_error(start: Start) -> None:
    run = start()
    engine = engine_of(run)
    os.kill(engine, signal.SIGSTOP)
    run.process.send_signal(signal.SIGINT)
    run.read_until("Stopping")
    os.kill(engine, signal.SIGKILL)

    assert run.wait() == 1
    output = "".join(run.lines)
    assert "The state is kept" not in output
    assert "before it had saved its state" in output


def test_invoke_does_not_use_the_engine_of_a_cloud_that_was_killed(start: Start) -> None:
    run = start()
    state, engine = State(run.state), engine_of(run)
    assert state.published_engine() is not None
    os.kill(engine, signal.SIGSTOP)

    run.stop(signal.SIGKILL)

    assert state.published_engine() is None
    with pytest.raises(LocalCloudError, match="still saves its state"), state:
        pass
    os.kill(engine, signal.SIGCONT)
    asyncio.run(state.wait_for_engine())
    with state:
        assert all_end({engine}, within=5)


def test_ctrl_c_while_it_starts_leaves_no_process(start: Start) -> None:
    run = start(port=0)
    deadline = time.monotonic() + 10
    while not (started := children_of(run.process.pid)) and time.monotonic() < deadline:
        time.sleep(0.02)

    code = run.stop()

    assert started
    assert code == 0
    assert all_end(started, within=5)
    assert "Traceback" not in "".join(run.lines)


def test_a_port_in_use_is_one_clear_line(start: Start, tmp_path: Path) -> None:
    with listen() as taken:
        port = taken.getsockname()[1]
        run = start(port=port)

        code = run.wait()

    assert code == 1
    assert "".join(run.lines).startswith(f"stint: port {port} is in use")
    assert "".join(run.lines).count("\n") == 1
    assert not (tmp_path / "state").exists()


def test_a_second_run_on_the_same_state_is_refused(start: Start, running: Run) -> None:
    second = start(state=running.state, port=0)

    code = second.wait()

    assert code == 1
    assert f"is in use by process {running.process.pid}" in "".join(second.lines)
    assert f"http://127.0.0.1:{running.port}" in "".join(second.lines)
    assert "Stop that process first, or use another folder: STATE=other make run\n" in "".join(second.lines)


def test_a_broken_tools_template_is_one_line_and_nothing_is_started(start: Start, tmp_path: Path) -> None:
    template = tmp_path / "template.yaml"
    template.write_text("Resources:\n  Tool:\n    Type: x\n   Properties: {}\n")

    run = start(port=0, tools=template)

    assert run.wait() == 1
    error = f"stint: {template}, line 4: not valid YAML (did not find expected key): check the indentation\n"
    assert "".join(run.lines) == error
    assert not (tmp_path / "state").exists()


def test_the_welcome_names_the_users_functions_and_missing_credentials(start: Start, tmp_path: Path) -> None:
    function = "{CodeUri: code, Handler: app.handler, Runtime: python3.13, FunctionName: order-status}"
    resources = f"Resources: {{Tool: {{Type: AWS::Serverless::Function, Properties: {function}}}}}"
    template = tmp_path / "template.yaml"
    template.write_text(f"Transform: AWS::Serverless-2016-10-31\n{resources}\n")
    (tmp_path / "code").mkdir()
    no_credentials = {"AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_CONFIG_FILE": "/dev/null"}

    run = start(tools=template, shell={"STINT_DEFAULT_MODEL": "bedrock/amazon.nova-lite-v1:0", **no_credentials})

    assert f"  tools  order-status ({template})\n" in run.lines
    assert any(line.startswith("Warning: bedrock/ models need AWS credentials") for line in run.lines)


def test_the_shell_sets_the_model_and_cors(start: Start) -> None:
    shell = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "STINT_CORS_ORIGIN": "https://a.example"}

    run = start(shell=shell)
    preflight = httpx.options(f"{run.url}/v1/agents", trust_env=False)
    answer = httpx.get(f"{run.url}/v1/agents", trust_env=False, timeout=120)

    assert any("model  openai/" in line for line in run.lines)
    assert preflight.headers["access-control-allow-origin"] == "https://a.example"
    assert answer.headers["access-control-allow-origin"] == "https://a.example"


def test_the_only_model_of_a_server_is_the_default_of_all_functions(start: Start) -> None:
    listed = {"object": "list", "data": [{"id": "llama3.2:latest"}]}
    with ChatCompletionsServer() as model:
        model.script(document(listed))
        run = start(shell={"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-hunter2-hunter2"})
        command = next(line for line in run.lines if line.lstrip().startswith("curl"))
        subprocess.run(shlex.split(command), check=True, capture_output=True, timeout=120)
        models = httpx.get(f"{run.url}/v1/models", trust_env=False, timeout=120).json()["data"]

        assert model.bodies[-1]["model"] == "llama3.2:latest"

    assert any(line.startswith("  model  openai/llama3.2:latest (the only model of ") for line in run.lines)
    assert "openai/llama3.2:latest" in [each["id"] for each in models if each.get("default")]
    assert "hunter2" not in "".join(run.lines)


def test_what_is_wrong_with_a_model_server_is_told_before_the_example(start: Start) -> None:
    with ChatCompletionsServer() as model:
        model.script(document({"hello": "world"}), document({"object": "list", "data": [{"id": "x"}]}))
        run = start(shell={"OPENAI_BASE_URL": model.url})

    *_, warning, advice, _, _, _ = run.lines
    assert warning.startswith(f"Warning: {model.url} answers, but not as a model server: /v1 is missing.")
    assert advice == f"  OPENAI_BASE_URL={model.base_url} make run\n"


def test_the_example_works_as_printed_while_the_default_model_does_not(start: Start) -> None:
    run = start(shell={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    command = next(line for line in run.lines if line.lstrip().startswith("curl"))

    answer = subprocess.run(shlex.split(command), capture_output=True, text=True, check=True, timeout=120).stdout

    assert "cannot be reached" in "".join(run.lines)
    assert json.loads(answer)["status"] == "completed"


def test_the_models_of_a_server_are_listed_and_an_unknown_id_suggests_the_nearest(start: Start) -> None:
    with ScriptedHTTPServer(answer_twelve) as model:
        run = start(shell={"OPENAI_BASE_URL": f"{model.url}/v1"})
        with httpx.Client(base_url=f"{run.url}/v1", trust_env=False, timeout=120) as client:
            listed = {each["id"] for each in client.get("/models").json()["data"]}
            asked = {"model": "openai/modle-3", "input": "Hi."}
            refused = client.post("/responses", json=asked)
            streamed = client.post("/responses", json=asked | {"stream": True})
            short = client.post("/responses", json={"model": "modle-3", "input": "Hi."})
            served = client.post("/responses", json={"model": "model-11", "input": "Hi."})
            config = {"model": "modle-3", "instructions": "Answer briefly."}
            agent = client.post("/agents", json={"agent_config": config})
            turn = send_turn(client, "openai/modle-3")

    assert {f"openai/model-{number}" for number in range(12)} <= listed
    near = "Did you mean 'openai/model-3'?"
    texts = [*(each.text for each in (refused, streamed, short, turn)), str(agent.headers)]
    assert [text for text in texts if near not in text] == []
    assert [each.status_code for each in (refused, short, served)] == [400, 400, 200]


def answer_twelve(received: Received) -> Reply:
    """Answer as Ollama with twelve models."""
    ids = [f"model-{number}" for number in range(12)]
    if received.path == "/v1/models":
        return document({"object": "list", "data": [{"id": each} for each in ids]})
    if received.json().get("model") not in ids:
        return error(404, "model 'x' not found", type="not_found_error")
    return answer_chat(received)


def send_turn(client: httpx.Client, model: str) -> httpx.Response:
    """Create an agent with a session, and return the response to a turn."""
    config = {"model": model, "instructions": "Answer briefly."}
    agent = f"/agents/{client.post('/agents', json={'agent_config': config}).json()['agent_id']}"
    session = client.post(f"{agent}/session", json={"session_name": "s"}).json()["session_id"]
    messages = [{"role": "user", "content": "Hi."}]
    return client.post(f"{agent}/session/{session}/turn", json={"messages": messages, "stream": True})


def test_invoke_uses_the_data_of_the_running_cloud(running: Run, tmp_path: Path) -> None:
    agent = create_agent(running.url)
    event = tmp_path / "event.json"
    event.write_text(json.dumps(proxy_event("GET", "/v1/agents", "/v1/agents")))

    done = invoke(running.state, "agents", event)

    assert done.returncode == 0, done.stderr
    assert agent in done.stdout


def test_invoke_brings_its_own_engine_and_streams(tmp_path: Path) -> None:
    path = "/v1/agents/a/session/s/turn/t"
    event = tmp_path / "event.json"
    event.write_text(json.dumps(proxy_event("GET", path, "/v1/agents/{agent_id}/session/{session_id}/turn/{turn_id}")))

    done = invoke(tmp_path / "state", "turns", event)

    head, _, body = done.stdout.partition("\n\n")
    assert done.returncode == 0, done.stderr
    assert head.startswith("HTTP 404\n")
    assert json.loads(body)["error"]["message"]


def test_invoke_names_the_functions_there_are(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    event.write_text("{}")

    done = invoke(tmp_path / "state", "nothing", event)

    assert done.returncode == 1
    known = "admin agents authorizer console knowledge october openai_agents protocols registry responses sandbox "
    known += "turns worker"
    assert " or ".join(known.split()) in done.stderr
    assert "Traceback" not in done.stderr


def test_invoke_names_a_missing_event(tmp_path: Path) -> None:
    done = invoke(tmp_path / "state", "agents", tmp_path / "missing.json")

    assert done.returncode == 1
    assert "missing.json" in done.stderr


def test_invoke_without_an_event_lists_some(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "infra.local", "--state", str(tmp_path), "invoke", "turns", ""]
    done = subprocess.run(command, cwd=ROOT, env=clean_shell(), capture_output=True, text=True, check=False, timeout=40)

    assert done.returncode == 1
    assert "events/turns/" in done.stderr
    assert "cannot read" not in done.stderr


def invoke(state: Path, function: str, event: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "infra.local", "--state", str(state), "invoke", function, str(event)]
    return subprocess.run(command, cwd=ROOT, env=clean_shell(), capture_output=True, text=True, check=False, timeout=40)


def proxy_event(method: str, path: str, resource: str) -> dict[str, object]:
    context = {"stage": "prod", "requestId": "r", "path": path, "identity": {"sourceIp": "127.0.0.1"}}
    caller = {"authorizer": ANONYMOUS.to_context()}
    return {
        "resource": resource,
        "path": path,
        "httpMethod": method,
        "headers": {"host": "localhost"},
        "multiValueHeaders": {"host": ["localhost"]},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": context | caller | {"httpMethod": method, "resourcePath": resource},
        "body": None,
        "isBase64Encoded": False,
    }


def test_a_turn_that_outlasts_its_time_ends_with_an_event_and_leaves_the_session_free(start: Start) -> None:
    run = start(shell={"STREAM_ROUTE_TIMEOUT_SECONDS": "10", "STINT_SCRIPTED_WORD_SECONDS": "0"})
    agent = create_agent(run.url)
    with httpx.Client(base_url=f"{run.url}/v1/agents/{agent}", trust_env=False, timeout=60) as client:
        warm, session = (client.post("/session", json={"session_name": "s"}).json()["session_id"] for _ in range(2))
        quick = {"messages": [{"role": "user", "content": "say: quick"}]}
        client.post(f"/session/{warm}/turn", json=quick)  # a cold start would take of the time that is tested
        slow = {"messages": [{"role": "user", "content": "slow: 600"}]}

        streamed = client.post(f"/session/{session}/turn", json=slow | {"stream": True})
        buffered = client.post(f"/session/{session}/turn", json=slow)
        turns = client.get(f"/session/{session}").json()["turns"]
        after = client.post(f"/session/{session}/turn", json=quick).json()

    last = json.loads(streamed.text.strip().splitlines()[-1].removeprefix("data: "))
    assert (streamed.status_code, last["error"]["code"]) == (200, "deadline_exceeded")
    assert (buffered.status_code, buffered.json()["error"]["code"]) == (504, "deadline_exceeded")
    assert buffered.headers["x-should-retry"] == "false"
    assert [(turn["status"], turn["error"]["code"]) for turn in turns] == [("failed", "deadline_exceeded")] * 2
    assert [turn["turn_id"] for turn in turns] == [last["error"]["turn_id"], buffered.json()["error"]["turn_id"]]
    assert after["output_message"]["content"] == "quick"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("port", "abc", "PORT: 'abc' is not a port"),
        ("port", "65536", "PORT: "),
        ("auth", "yes", "AUTH: invalid choice"),
    ],
)
def test_a_wrong_option_is_one_line(option: str, value: str, message: str) -> None:
    command = [sys.executable, "-m", "infra.local", "run", f"--{option}", value]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr.startswith(f"stint: {message}")
    assert len(done.stderr.splitlines()) == 1


def test_it_says_so_and_ends_when_the_engine_dies(start: Start) -> None:
    run = start()
    engine = engine_of(run)

    os.kill(engine, signal.SIGKILL)

    assert run.wait() == 1
    assert re.search(
        r"the local AWS engine has died: what was stored since (its start|[\d:]{8}) is lost", "".join(run.lines)
    )


def engine_of(run: Run) -> int:
    """Return the process of the engine."""
    return next(pid for pid in children_of(run.process.pid) if "engine_process" in command_of(pid))


def command_of(process: int) -> str:
    return subprocess.run(
        ["ps", "-ww", "-o", "args=", "-p", str(process)], capture_output=True, text=True, check=False
    ).stdout


def test_a_path_with_a_wrong_prefix_names_the_base_url(
    running: Run,
) -> None:
    """Each path of the API is sent without /v1, and with another prefix."""
    october = [route for router in list_october_parts() for route in router.routes if isinstance(route, Route)]
    with httpx.Client(base_url=running.url, trust_env=False, timeout=120) as http:
        routes = {(each["method"], each["route"]) for each in http.get("/v1/inspect/routes").json()["data"]}
        below = {(method, re.sub(r"{[^}]+}", "x", path)) for method, path in routes if path.startswith("/v1/")}
        asked = [(method, path.removeprefix("/v1")) for method, path in below if "/openai/v1/" not in path]
        asked += [(method, f"/openai{path}") for method, path in below if "/openai/v1/" not in path]
        unlike = [
            (method, path, answer.status_code, message)
            for method, path in sorted(asked)
            if not any(route.path_regex.match(path) for route in october)
            and BASE_URL not in (message := (answer := http.request(method, path)).text)
        ]

    assert len(asked) > 200
    assert unlike == []
