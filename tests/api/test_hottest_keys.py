"""The table "Hottest keys" of docs/costs.md: which partition key of each operation takes most of its limit.

Records of this test have less than 1 KB, so a write is a unit, and a read as well, or half of one.
"""

import asyncio
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from infra.bench.scale.capacity import OF_A_KEY, Direction
from infra.bench.scale.table_engine import BATCHES, is_consistent, members_of, place_of, places
from tests.api.api_client import create_agent, create_session, say
from tests.api.app_fixture import AppFixture

from stint.domain.run_signals import TurnRef
from stint.store.keys import SHARDS, STOP_COPIES

COSTS = (Path(__file__).parents[2] / "docs" / "costs.md").read_text()
ROW = re.compile(r"^\| (.+?) \| `(T#\S+)` \| (\d) \| ([\d.]+) \| ([\d.]+) \| ([\d,]+) \|", re.MULTILINE)
SHARED = {
    r"agent": "T#agent",
    r"agent:[^:]+": "T#agent:{agent}",
    r"session:[^:]+": "T#session:{agent}",
    r"registry": "T#registry",
    r"stop": "T#stop",
    r"stop:\d": "T#stop:{copy}",
    r"vector_store:[^:]+": "T#vector_store:{store}",
    r"(\w+)\.\d": r"T#\1.{shard}",
}
"""The keys that several sessions, responses or documents share, by the patterns of their rests."""
TURN = [{"role": "user", "content": "Hello"}]
RESPONSE = {"model": "scripted/demo", "input": "Hello"}
JSON = dict[str, Any]


def kind_of(pk: str) -> str:
    """Return the kind of a shared key, and the key itself if it is not shared."""
    rest = pk.partition("#")[2]
    found = (re.sub(f"^{pattern}$", kind, rest) for pattern, kind in SHARED.items() if re.fullmatch(pattern, rest))
    return next(found, pk)


def consumed(calls: list[tuple[str, bytes]]) -> dict[str, Counter[Direction]]:
    """Return the write and the read units of each key that is shared."""
    units: dict[str, Counter[Direction]] = defaultdict(Counter)
    for operation, body in calls:
        request = json.loads(body)
        if operation in BATCHES:
            direction = BATCHES[operation][1]
            touched = [place_of(member) for member in members_of(operation, request)]
        else:
            touched, direction = places(operation, request)
        whole = direction == "write" or is_consistent(operation, request)
        for place in touched:
            units[place.pk][direction] += (2 if operation.startswith("Transact") else 1) if whole else 0.5  # type: ignore[assignment]  # halves
    return {pk: counts for pk, counts in units.items() if kind_of(pk) != pk}


def share(counts: Counter[Direction]) -> float:
    return OF_A_KEY.share("write", counts["write"]) + OF_A_KEY.share("read", counts["read"])


class Operations:
    """Runs each operation once. `found` has what the hottest keys have consumed, by the operation."""

    def __init__(self, http: httpx.Client, app_fixture: AppFixture) -> None:
        self.http, self.app_fixture = http, app_fixture
        self.calls: list[tuple[str, bytes]] = []
        self.found: dict[str, dict[str, Counter[Direction]]] = {}

    def note(self, name: str, act: Callable[[], Any]) -> Any:
        self.calls.clear()
        answer = act()
        assert not isinstance(answer, httpx.Response) or answer.status_code < 300, answer.text
        by_key = consumed(list(self.calls))
        most = max(map(share, by_key.values()))
        self.found[name] = {kind_of(pk): counts for pk, counts in by_key.items() if share(counts) == most}
        return answer.json() if isinstance(answer, httpx.Response) else answer

    def run(self) -> None:
        for group in (self.run_agents, self.run_responses, self.run_knowledge, self.run_stops):
            group()

    def run_agents(self) -> None:
        http, tenant = self.http, self.app_fixture.tenant
        agent = self.note("create an agent", lambda: create_agent(http))
        session = self.note("create a session", lambda: create_session(http, agent))
        self.app_fixture.made.clear()  # another process
        self.note("turn, in a new process", lambda: say(http, session, "Hello"))
        turn = self.note("turn", lambda: say(http, session, "Hello"))["turn_id"]
        run = TurnRef(agent, session.rpartition("/")[2], turn)
        signals = self.app_fixture.store.run_signals
        self.note("second of a running turn: watch", lambda: asyncio.run(signals.read(tenant, [run])))
        self.note("cancel a turn", lambda: http.post(f"{session}/turn/{turn}/cancel"))
        self.note("heartbeat of a turn", lambda: http.post(f"{session}/turn/{turn}/heartbeat"))
        self.note("read a session or a turn", lambda: http.get(session))
        self.note("list sessions", lambda: http.get(f"/v1/agents/{agent}/sessions"))
        self.note("list agents", lambda: http.get("/v1/agents"))
        self.note("delete a session", lambda: http.delete(session))

    def run_responses(self) -> None:
        http = self.http
        self.note("response, stored", lambda: http.post("/v1/responses", json=RESPONSE))
        self.note("response, not stored", lambda: http.post("/v1/responses", json=RESPONSE | {"store": False}))
        self.note(
            "response in the background", lambda: http.post("/v1/responses", json=RESPONSE | {"background": True})
        )
        self.app_fixture.work_off()
        made = self.note("create a conversation", lambda: http.post("/v1/conversations", json={}))
        talking = RESPONSE | {"conversation": made["id"]}
        self.note("response in a conversation", lambda: http.post("/v1/responses", json=talking))
        self.note("list responses", lambda: http.get("/v1/responses"))
        chat = {"model": "scripted/demo", "messages": TURN, "store": True}
        self.note("chat completion, stored", lambda: http.post("/v1/chat/completions", json=chat))

    def run_knowledge(self) -> None:
        http = self.http
        text, purpose = {"file": ("a.txt", b"Water boils at 100 degrees.")}, {"purpose": "assistants"}
        file = self.note("upload a file", lambda: http.post("/v1/files", files=text, data=purpose))["id"]
        part_of = purpose | {"filename": "a.txt", "bytes": 5, "mime_type": "text/plain"}
        upload = http.post("/v1/uploads", json=part_of).json()["id"]
        part = http.post(f"/v1/uploads/{upload}/parts", files={"data": ("part", b"Hello")}).json()["id"]
        complete = f"/v1/uploads/{upload}/complete"
        self.note("complete an upload in parts", lambda: http.post(complete, json={"part_ids": [part]}))
        store = http.post("/v1/vector_stores", json={}).json()["id"]
        path = f"/v1/vector_stores/{store}"
        self.note("add a file to a vector store", lambda: http.post(f"{path}/files", json={"file_id": file}))
        self.note("ingest a file", self.app_fixture.ingest)
        self.note("search a vector store", lambda: http.post(f"{path}/search", json={"query": "water"}))
        self.note("list the chunks of a file", lambda: http.get(f"{path}/files/{file}/chunks"))

    def run_stops(self) -> None:
        tenant, stops = self.app_fixture.tenant, self.app_fixture.store.stops
        add = stops.add(tenant, "key:key_" + "0" * 24, int(time.time()))
        self.note("set or lift a stop", lambda: asyncio.run(add))


@pytest.fixture
def operations(http: httpx.Client, app_fixture: AppFixture) -> Operations:
    made = Operations(http, app_fixture)

    def observe(operation: str, body: bytes) -> None:
        made.calls.append((operation, body))

    app_fixture.proxy.observers.append(observe)
    try:
        made.run()
    finally:
        app_fixture.proxy.observers.remove(observe)
    return made


def test_the_hottest_key_of_each_operation_is_documented_with_its_rate(operations: Operations) -> None:
    rows = ROW.findall(COSTS)

    assert sorted(name for name, *_ in rows) == sorted(operations.found)
    for name, key, keys, writes, reads, rate in rows:
        found = operations.found[name]
        assert key in found, (name, found)
        assert int(keys) in (1, SHARDS, STOP_COPIES)
        assert (found[key]["write"], found[key]["read"]) == (float(writes), float(reads)), name
        assert int(rate.replace(",", "")) == int(int(keys) / share(found[key])), name
