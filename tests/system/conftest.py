import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from infra.local.cloud import Plan, base_url, running_cloud, serving_front
from infra.local.engine import RunningEngine
from infra.local.server import listen
from openai import DefaultHttpxClient, OpenAI
from tests.servers import tavily
from tests.servers.scripted_http import ScriptedHTTPServer
from tests.system.run_process import Run

APPS = Path(__file__).parent / "apps"
NO_ENGINE = RunningEngine("http://127.0.0.1:9", "us-east-1", {})
NO_KEY = {"STINT_CREDENTIALS_KEY_ARN": "arn:aws:kms:us-east-1:000000000000:key/none"}
"""Settings without a key in the engine."""


@dataclass(frozen=True)
class Api:
    """The API of `apps/template.yaml`. Functions write files into `marks`; errors of the front are in `log`."""

    client: httpx.Client
    marks: Path
    log: list[str]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    marks = tmp_path_factory.mktemp("marks")
    log: list[str] = []
    shell = {"STINT_CORS_ORIGIN": "https://example.org", "STINT_MARK_FOLDER": str(marks)} | NO_KEY
    plan = Plan(shell, template=APPS / "template.yaml", concurrency=2, authorize=True)
    listener = listen()
    loop = asyncio.new_event_loop()
    stopping = asyncio.Event()
    ready = threading.Event()

    async def serve() -> None:
        def note(subject: str, line: str) -> None:
            log.append(f"{subject}: {line}")

        async with running_cloud(plan, NO_ENGINE, note) as cloud, serving_front(cloud, listener, note):
            ready.set()
            await stopping.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(20)
    with httpx.Client(base_url=base_url(listener), timeout=120, trust_env=False) as client:
        yield Api(client, marks, log)
    loop.call_soon_threadsafe(stopping.set)
    thread.join()
    loop.close()
    listener.close()


@pytest.fixture(scope="session")
def responses_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run `make run`, shared by the tests with clients of the Responses API."""
    with ScriptedHTTPServer(tavily.answer) as search_engine:
        shell = {"STINT_SCRIPTED_WORD_SECONDS": "0.005", "STINT_TAVILY_BASE_URL": search_engine.url}
        run = Run(tmp_path_factory.mktemp("responses"), 0, shell=shell)
        run.read_until("Ctrl-C stops")
        yield run
        run.stop()


@pytest.fixture(params=["/v1", "/v1/openai/v1"])
def openai_client(responses_run: Run, request: pytest.FixtureRequest) -> Iterator[OpenAI]:
    """Yield OpenAI's client, with its own retries, for each of the base URLs."""
    http = DefaultHttpxClient(trust_env=False)
    with OpenAI(base_url=f"{responses_run.url}{request.param}", api_key="key", http_client=http) as client:
        yield client
