"""Tasks and events of one tenant that name objects of another one do what they do with unknown ids."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from itertools import chain, combinations
from typing import Any, get_args

import pytest
from tests.api.isolation.belongings import mask_text, unknown_like
from tests.api.isolation.tenants import Tenant, make_tenant, read_all
from tests.api.isolation.warm_process import TASK_SECONDS, WarmProcess, run_task

from stint.domain.errors import StintError
from stint.domain.ids import new_id
from stint.domain.notifications.request_events import REQUEST_EVENT
from stint.domain.tasks import IDS, TASK, ObjectKind

HELLO = [{"role": "user", "content": "Hello"}]
NAMES = {"document": "store_file_id", "chat_completion_id": "completion_id"}
"""The fields of tasks whose objects have another name in the paths of the API."""

EVENTS: Mapping[str, Mapping[str, Any]] = {
    "Stint Turn Requested": {"agent_id": "{agent_id}", "session_id": "{session_id}", "messages": HELLO},
    "Stint Response Requested": {"previous_response_id": "{response_id}", "input": "Hello"},
}


@pytest.fixture(scope="module")
def alice(warm_process: WarmProcess, mcp_server: str) -> Iterator[Tenant]:
    yield from make_tenant(warm_process, "alice", mcp_server)


@pytest.fixture(scope="module")
def bob(warm_process: WarmProcess, mcp_server: str) -> Iterator[Tenant]:
    yield from make_tenant(warm_process, "bob", mcp_server)


def list_tasks() -> list[dict[str, Any]]:
    """Return a task of every kind, with names of ids in place of ids."""
    kinds: tuple[ObjectKind, ...] = get_args(ObjectKind)
    deletions = {kind: "delete" if kind in ("agent", "session") else f"delete_{kind}" for kind in kinds}
    ingestion = {"kind": "ingest", "vector_store_id": "{vector_store_id}", "documents": ["{store_file_id}"]}
    waiting = {"kind": "waiting"}
    return [
        {"kind": "response", "response_id": "{background_response_id}"},
        ingestion,
        waiting | {"agent_id": "{agent_id}", "session_id": "{waiting_session_id}", "message_id": "{waiting_turn_id}"},
        waiting | {"conversation_id": "{waiting_conversation_id}", "message_id": "{waiting_message_id}"},
        *({"kind": deletions[kind]} | {name: f"{{{NAMES.get(name, name)}}}" for name in IDS[kind]} for kind in kinds),
    ]


def list_events() -> list[dict[str, Any]]:
    """Return an event of every type, likewise."""
    return [{"detail-type": name, "detail": detail} for name, detail in EVENTS.items()]


def put_ids(form: Mapping[str, Any], ids: Mapping[str, str], tenant: str) -> dict[str, Any]:
    """Return a task or an event with ids in place of their names."""
    text = json.dumps(form)
    for name, value in ids.items():
        text = text.replace(f"{{{name}}}", value)
    filled: dict[str, Any] = json.loads(text)
    return filled | {"tenant": tenant}


def names_in(form: Mapping[str, Any], ids: Mapping[str, str]) -> list[str]:
    return [name for name in ids if f"{{{name}}}" in json.dumps(form)]


def choices(form: Mapping[str, Any], ids: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield each choice of ids that are another tenant's."""
    names = names_in(form, ids)
    yield from chain.from_iterable(combinations(names, count) for count in range(1, len(names) + 1))


async def handle_task(process: WarmProcess, task: Mapping[str, Any]) -> str:
    """Handle a task like the worker, and return its outcome."""
    before = len(process.queue.sent)
    try:
        await run_task(process.composition, TASK.validate_python(task))
    except StintError as error:
        return f"{type(error).__name__}: {error.message}"
    return f"done, {len(process.queue.sent) - before} tasks sent"


async def handle_event(process: WarmProcess, event: Mapping[str, Any]) -> str:
    """Handle an event like the worker, and return its completion event."""
    request = REQUEST_EVENT.validate_python(event)
    deadline = asyncio.get_running_loop().time() + TASK_SECONDS
    requests = process.composition.make_event_requests(request.tenant)
    finished = await requests.handle(request, new_id(), deadline)
    return "" if finished is None else finished.model_dump_json()


Handle = Callable[[WarmProcess, Mapping[str, Any]], Coroutine[Any, Any, str]]


def compare(process: WarmProcess, alice: Tenant, bob: Tenant, form: Mapping[str, Any], handle: Handle) -> Iterator[str]:
    """Yield each difference between the outcomes with ids of Alice and with unknown ones, in Bob's name."""
    for names in choices(form, bob.ids):
        foreign = {**bob.ids, **{name: alice.ids[name] for name in names}}
        unknown = {**bob.ids, **{name: unknown_like(alice.ids[name]) for name in names}}
        found, missing = (asyncio.run(handle(process, put_ids(form, ids, bob.name))) for ids in (foreign, unknown))
        if mask_text(found, foreign) != mask_text(missing, unknown):
            yield f"{form} with {names}: {found} instead of {missing}"


def test_tasks_with_ids_of_another_tenant_find_nothing(warm_process: WarmProcess, alice: Tenant, bob: Tenant) -> None:
    before = read_all(alice)

    wrong = [each for task in list_tasks() for each in compare(warm_process, alice, bob, task, handle_task)]

    assert wrong == []
    assert read_all(alice) == before


def test_events_with_ids_of_another_tenant_find_nothing(warm_process: WarmProcess, alice: Tenant, bob: Tenant) -> None:
    before = read_all(alice)

    wrong = [each for event in list_events() for each in compare(warm_process, alice, bob, event, handle_event)]

    assert wrong == []
    assert read_all(alice) == before
