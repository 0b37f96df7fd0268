import asyncio
import base64
import contextlib
import json
import re
import sysconfig
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from infra.local.cloud import Cloud, Plan, running_cloud
from infra.local.engine import Engine
from infra.local.environment import OFFLINE_EMBEDDING_MODEL, OFFLINE_MODEL
from infra.local.invocation import Invocation
from infra.local.invoke import EVENTS, find_function, prepare, streams
from infra.local.proxy_response import Head, parse_buffered, read_prelude
from infra.local.sample_ids import AGENT, DELETED_AGENT
from infra.local.schedules import create_groups, name_groups
from infra.openapi.document import describe_api
from infra.scripts.openapi import DOCUMENT
from tests.samples.answers import FILES, HTTP_FILES, STATUSES, Operation, check_answer, documents, operation_of
from tests.unit.documents.pdf_files import make_pdf

from stint.http.routes.inspection import BUILT_EMBEDDING_MODEL, BUILT_MODEL, BUILT_URL

pytestmark = [pytest.mark.built, pytest.mark.asyncio(loop_scope="module")]

OPENAPI = describe_api()
OPERATIONS = Operation.all(OPENAPI)
# What the interpreter writes with -v.
IMPORTED = re.compile(r"import '([\w.]+)' #")
LOADED = re.compile(r"# code object from '?([^']+)'?$")
MANAGED = re.compile(r"/stint-functions-[^/]+/runtime/")
TIME = re.compile(r"\d{4}-\d{2}-\d{2}T[\d:.]+Z|\"(milliseconds|first_token_ms|\w*dollars)\":[^,}]+")
STDLIB = sysconfig.get_path("stdlib")
NOT_IN_LAMBDA = {"openai", "uvicorn", "moto", "pytest", "llama_stack_client", "infra", "tests"}
PROVIDERS = {"stint.models.bedrock.model", "stint.models.openai_compatible"}
STREAMING = {"turns", "responses", "knowledge", "october", "openai_agents", "protocols"}
WORKER_FILES = [file for file in FILES if file.parent.name == "worker"]
FIRST_EVENT = {"agents": "get_agent", "turns": "create_turn_streaming", "registry": "list_models"}


@dataclass
class Built:
    """The built functions, and the log of each."""

    cloud: Cloud
    log: dict[str, list[str]]

    async def invoke(self, file: Path) -> Invocation:
        """Replay an event after its samples are stored."""
        payload = await asyncio.to_thread(file.read_bytes)
        function = find_function(self.cloud.system, f"stint-{file.parent.name}")
        await prepare(payload, {**function.environment, **self.cloud.services})
        return await self.cloud.functions.invoke(function.name, payload, stream=streams(self.cloud.system, function))

    async def invoke_again(self, file: Path) -> Any:
        """Replay an event of the worker as it stands, and give what it answers."""
        payload = await asyncio.to_thread(file.read_bytes)
        return json.loads(await (await self.cloud.functions.invoke("stint-worker", payload, stream=False)).read())

    async def answer(self, file: Path) -> tuple[Head, bytes]:
        """Replay an event of API Gateway, and read the whole answer."""
        invocation = await self.invoke(file)
        chunks = invocation.body()
        if file.parent.name in STREAMING:
            head, start = await read_prelude(chunks)
            body = start + b"".join([chunk async for chunk in chunks])
        else:
            head, body = parse_buffered(b"".join([chunk async for chunk in chunks]))
        assert invocation.error is None
        return head, body

    def imported(self, group: str) -> set[str]:
        """The modules that the processes of a function have imported."""
        return {match[1] for line in self.log[f"stint-{group}"] if (match := IMPORTED.match(line))}

    def code(self, group: str) -> set[Path]:
        """The files from which they have taken code."""
        return {Path(match[1]) for line in self.log[f"stint-{group}"] if (match := LOADED.match(line))}


@contextlib.asynccontextmanager
async def running(build: Path, interpreter: Path, engine: Engine) -> AsyncIterator[Built]:
    log: dict[str, list[str]] = defaultdict(list)
    shell = {"STINT_USAGE_SUMS": "true", "STINT_SESSION_STREAM_SECONDS": "1"}
    plan = Plan(shell, template=build / "template.yaml", python=interpreter, authorize=True)
    async with running_cloud(plan, engine.running, lambda name, line: log[name].append(line)) as cloud:
        await asyncio.to_thread(create_groups, cloud.engine, name_groups(cloud.system))
        yield Built(cloud, log)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def built(build: Path, interpreter: Path, engine: Engine) -> AsyncIterator[Built]:
    async with running(build, interpreter, engine) as built:
        yield built


def query_of(file: Path) -> dict[str, str] | None:
    query: dict[str, str] | None = json.loads(file.read_text())["queryStringParameters"]
    return query


@pytest.mark.parametrize("file", HTTP_FILES, ids=[f"{file.parent.name}/{file.stem}" for file in HTTP_FILES])
async def test_an_event_is_answered_as_the_openapi_document_says(built: Built, file: Path) -> None:
    operation = operation_of(file, OPERATIONS)

    head, body = await built.answer(file)

    assert head.status == STATUSES.get(operation.name, 200), body
    check_answer(OPENAPI, operation, head, body, query_of(file))


@pytest.mark.parametrize(
    ("event", "last"), [("create_turn_streaming", "turn_awaiting_input"), ("resume_turn_streaming", "turn_complete")]
)
async def test_a_streamed_turn_ends_with_its_terminal_event(built: Built, event: str, last: str) -> None:
    head, body = await built.answer(EVENTS / "turns" / f"{event}.json")

    payloads = [document["event"]["payload"] for document in documents("text/event-stream", body)]
    assert dict(head.headers)["content-type"].startswith("text/event-stream")
    assert [payload["event_type"] for payload in payloads].index(last) == len(payloads) - 1


async def test_a_session_is_read_behind_a_stage_and_behind_a_base_path(built: Built) -> None:
    _, behind_stage = await built.answer(EVENTS / "turns" / "get_session.json")
    _, behind_base_path = await built.answer(EVENTS / "turns" / "get_session_custom_domain.json")

    # The samples are made again for each event, so the times and receipts differ.
    session, other = (TIME.sub("", body.decode()) for body in (behind_stage, behind_base_path))
    assert [turn["status"] for turn in json.loads(behind_stage)["turns"]] == ["completed", "awaiting_input"]
    assert session == other


async def test_the_document_that_is_served_is_the_one_of_the_code(built: Built) -> None:
    _, body = await built.answer(EVENTS / "registry" / "get_openapi.json")

    [server] = json.loads(body)["servers"]
    own = {BUILT_MODEL: OFFLINE_MODEL, BUILT_EMBEDDING_MODEL: OFFLINE_EMBEDDING_MODEL, BUILT_URL: server["url"]}
    expected = reduce(lambda text, name: text.replace(name, own[name]), own, DOCUMENT.read_text())
    assert server["url"].endswith("/prod")
    assert json.loads(body) == json.loads(expected)


async def test_a_lambda_function_is_a_tool_that_hears_the_arguments_alone(built: Built) -> None:
    _, body = await built.answer(EVENTS / "registry" / "invoke_tool.json")

    result = json.loads(body)
    assert (result["error_code"], result["error_message"]) == (0, None)
    assert json.loads(result["content"]) == {"liquid": "polyjuice", "boiling_point": -100, "unit": "Celsius"}
    lines = [line for line in built.log["get-boiling-point"] if line.startswith("call ")]
    assert lines
    assert all(re.fullmatch(r"call call_[0-9a-f-]{36}: polyjuice", line) for line in lines)


async def test_a_shield_finds_what_its_registration_forbids(built: Built) -> None:
    _, body = await built.answer(EVENTS / "registry" / "run_shield.json")

    assert json.loads(body)["violation"]["violation_level"] == "error"


async def test_the_worker_finishes_a_deletion(built: Built) -> None:
    invocation = await built.invoke(EVENTS / "worker" / "delete_agent.json")
    done = json.loads(await invocation.read())
    dynamodb = built.cloud.engine.client("dynamodb")
    items = await asyncio.to_thread(dynamodb.scan, TableName=built.cloud.engine.outputs["TableName"])
    dynamodb.close()

    assert (done, invocation.error) == ({"batchItemFailures": []}, None)
    assert DELETED_AGENT not in json.dumps(items["Items"], default=str)
    assert AGENT in json.dumps(items["Items"], default=str)


@pytest.mark.parametrize("file", WORKER_FILES, ids=[file.stem for file in WORKER_FILES])
async def test_the_worker_does_what_its_events_ask_for(built: Built, file: Path) -> None:
    invocation = await built.invoke(file)
    answer = json.loads(await invocation.read())

    assert invocation.error is None
    if file.stem.startswith("start_"):
        assert answer["status"] == "completed"
        assert await built.invoke_again(file) == answer
    elif file.stem.startswith("object_"):
        assert answer is None
    else:
        assert answer == {"batchItemFailures": []}
    assert not [line for line in built.log["stint-worker"] if "was dropped" in line]


async def test_a_pdf_is_read_by_a_process_that_finds_what_was_built(built: Built, tmp_path: Path) -> None:
    paper = base64.b64encode(make_pdf("Ants march.")).decode()
    documents = [{"content": {"uri": f"data:application/pdf;base64,{paper}"}, "mime_type": ""}]
    turn = json.loads((EVENTS / "turns" / "create_turn.json").read_text())
    turn["body"] = json.dumps(json.loads(turn["body"]) | {"documents": documents})
    work = json.loads((EVENTS / "worker" / "start_turn.json").read_text())
    work |= {"id": "a-turn-with-a-pdf", "detail": work["detail"] | {"documents": documents}}
    for group, event in (("turns", turn), ("worker", work)):
        (tmp_path / group).mkdir()
        (tmp_path / group / "event.json").write_text(json.dumps(event))

    head, body = await built.answer(tmp_path / "turns" / "event.json")
    answer = json.loads(await (await built.invoke(tmp_path / "worker" / "event.json")).read())

    assert head.status == 200, body
    assert answer["status"] == "completed"


@pytest.mark.parametrize("group", FIRST_EVENT)
async def test_a_function_imports_no_more_than_its_first_event_needs(
    build: Path, interpreter: Path, engine: Engine, group: str
) -> None:
    async with running(build, interpreter, engine) as built:
        await built.answer(EVENTS / group / f"{FIRST_EVENT[group]}.json")

        imported = built.imported(group)
    packages = {name.split(".")[0] for name in imported}
    assert {"stint.http.app", "fastapi", "app"} <= imported
    assert not packages & NOT_IN_LAMBDA
    assert "httpx" not in packages
    assert not imported & PROVIDERS
    assert ("stint_runtime" in packages) == (group in STREAMING)
    assert ("mangum" in packages) == (group not in STREAMING)


@pytest.mark.parametrize("group", FIRST_EVENT)
async def test_a_function_runs_on_what_was_built_and_never_compiles(built: Built, group: str, build: Path) -> None:
    await built.answer(EVENTS / group / f"{FIRST_EVENT[group]}.json")

    code = built.code(group)
    shipped = {path for path in code if path.resolve().is_relative_to(build)}
    runtime = {path for path in code if MANAGED.search(str(path))}
    standard = {path for path in code if path.is_relative_to(STDLIB) and "site-packages" not in path.parts}
    assert {path.name.split(".")[0] for path in shipped} >= {"app", "archive", "CoreLayer", "DependenciesLayer"}
    assert code - shipped - runtime - standard == set()
    assert {path.suffix for path in shipped} == {".pyc", ".bytecode"}
