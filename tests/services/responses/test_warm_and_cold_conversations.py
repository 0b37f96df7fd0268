"""A conversation that two warm processes read, under random use, against what a cold process reads.

Both processes create responses in it and add and delete items. With the layout `compatible`, so does one that knows of
no cache, as those of earlier releases. With `spread`, items are listed only if a change is possible, so it is compared
what responses read under the lease.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from tests.script_model import Part, called, deadline, said, script
from tests.services.responses.responder import Responder
from tests.services.responses.test_remembered_conversations import contexts_of, state
from tests.services.worker_fixture import FUNCTION, MCP_TOOL, WorkerFixture
from tests.store.conftest import Cloud
from tests.store.response_samples import message

from stint.domain.errors import InvalidRequest
from stint.domain.ids import hex_of, new_ids_before
from stint.domain.inference import ReasoningChunk
from stint.domain.openai.conversations import CreateItems, StoredItem
from stint.domain.openai.items import CompactionItem
from stint.domain.openai.opaque import CompactedContext
from stint.store.keys import Key, KeyLayout

HISTORY_BYTES = 6_000
TOOLS = {"tools": [FUNCTION, MCP_TOOL | {"require_approval": {"always": {"tool_names": ["buy"]}}}]}

ANSWERS: dict[str, list[list[Part]]] = {
    "text": [said("fine")],
    "thought": [[ReasoningChunk("hm"), *said("fine")]],
    "client's tool": [called("ask_user")],
    "server's tool": [called("look"), said("then")],
    "both tools": [called("look", "ask_user", text="so")],
    "approval": [called("buy")],
    "refused": [[InvalidRequest("no")]],
}
ITEM = st.one_of(
    st.builds(
        lambda role, length: {"type": "message", "role": role, "content": "x" * length},
        st.sampled_from(["user", "user", "assistant", "system"]),
        st.sampled_from([1, 1, 900]),
    ),
    st.builds(
        lambda call_id: {"type": "function_call", "call_id": call_id, "name": "ask_user", "arguments": "{}"},
        st.sampled_from(["c0", "c1"]),
    ),
    st.builds(
        lambda call_id: {"type": "function_call_output", "call_id": call_id, "output": "yes"},
        st.sampled_from(["c0", "c1"]),
    ),
)
PROCESS = st.integers(0, 1)


class Conversation(RuleBasedStateMachine):
    """One conversation. What the processes read is compared after each step."""

    cloud: Cloud
    tenants: Iterator[str]
    key_layout: KeyLayout

    def __init__(self) -> None:
        super().__init__()
        self.wait_for = asyncio.Runner().run
        self.tenant = next(self.tenants)
        self.model, self.distances = script(), count(100)
        self.leasing = 0
        first = WorkerFixture(self.cloud, self.tenant, self.model, history=HISTORY_BYTES, key_layout=self.key_layout)
        self.processes = [Responder(first), Responder(first.other_process(self.model))]
        self.id = self.wait_for(self.processes[0].conversation())

    @precondition(lambda self: self.key_layout == "compatible")
    @invariant()
    def both_read_what_a_cold_process_reads(self) -> None:
        for process in self.processes:
            assert self.wait_for(self.read(process, known=True)) == self.wait_for(self.read(process, known=False))

    async def read(self, process: Responder, *, known: bool) -> Any:
        links = process.worker_fixture.links if known else None
        return state(await contexts_of(process, links, HISTORY_BYTES).peek(self.id, shortens=True))

    @precondition(lambda self: self.key_layout == "spread")
    @invariant()
    def one_reads_under_the_lease_what_a_cold_process_reads(self) -> None:
        process = self.processes[self.leasing]
        assert self.wait_for(self.lease_and_read(process)) == self.wait_for(self.read(process, known=False))

    @precondition(lambda self: self.key_layout == "spread")
    @rule()
    def let_the_other_process_lease(self) -> None:
        self.leasing = 1 - self.leasing

    async def lease_and_read(self, process: Responder) -> Any:
        """Read like a response that then fails, so it has no items."""
        links = process.worker_fixture.links
        contexts = contexts_of(process, links, HISTORY_BYTES)
        context = await contexts.from_conversation(self.id, "resp_failed", deadline(30), shortens=True)
        keeper = context.keeper
        assert keeper is not None
        found = state(context)
        links.note_response(self.tenant, self.id, [], keeper.lease.lease_id)
        keeper.stop()
        await keeper.release()
        return found

    @rule(place=PROCESS, answer=st.sampled_from(sorted(ANSWERS)), given=st.sampled_from(["x", "x" * 900, "output"]))
    def respond(self, place: int, answer: str, given: str) -> None:
        output = {"type": "function_call_output", "call_id": "c0", "output": "yes"}
        said_now: Any = [output] if given == "output" else given
        self.wait_for(self.run(place, answer, said_now))

    @rule(place=PROCESS, approve=st.booleans())
    def answer_approval(self, place: int, approve: bool) -> None:
        items = self.wait_for(self.listed())
        ids = [item.id for item in items if item.type == "mcp_approval_request"]
        if ids:
            given = {"type": "mcp_approval_response", "approval_request_id": ids[-1], "approve": approve}
            self.wait_for(self.run(place, "text", [given]))

    async def run(self, place: int, answer: str, given: Any) -> None:
        self.model.answers = [[]] * len(self.model.requests) + ANSWERS[answer] + [said("more")] * 2
        with suppress(InvalidRequest):  # a call waits for its output, or there is none for an output
            await self.processes[place].respond(given, conversation=self.id, truncation="auto", **TOOLS)

    @rule(place=PROCESS, items=st.lists(ITEM, min_size=1, max_size=3))
    def add(self, place: int, items: list[dict[str, Any]]) -> None:
        body = CreateItems.model_validate({"items": items})
        self.wait_for(self.processes[place].worker_fixture.services.conversations.add_items(self.id, body.items))

    @rule(place=PROCESS, at=st.integers(0, 30))
    def delete(self, place: int, at: int) -> None:
        items = self.wait_for(self.listed())
        if items:
            service = self.processes[place].worker_fixture.services.conversations
            self.wait_for(service.delete_item(self.id, items[at % len(items)].id))

    @precondition(lambda self: self.key_layout == "compatible")
    @rule(at=st.integers(0, 30))
    def delete_a_record(self, at: int) -> None:
        if found := self.wait_for(self.keys()):
            self.wait_for(self.cloud.table.delete(Key(self.pk, found[at % len(found)])))

    @precondition(lambda self: self.key_layout == "compatible")
    @rule(at=st.integers(0, 30), compacts=st.sampled_from([False, False, True]))
    def add_a_record(self, at: int, compacts: bool) -> None:
        """Add an item whose id is before others, or one that replaces all before it."""
        self.wait_for(self.put(at, compacts=compacts))

    async def put(self, at: int, *, compacts: bool) -> None:
        found, item = await self.listed(), message("late")
        added = StoredItem(item=item)
        if compacts:
            opaque = self.processes[0].worker_fixture.services.background.recovery.opaque
            await opaque.load()
            text = opaque.encode(CompactedContext(summary="before", messages=[]))
            summary = CompactionItem(id=item.id.replace("msg", "cmp"), encrypted_content=text)
            added = StoredItem(item=summary, compacts=True)
        elif found:
            # Far enough before that no input of a response has the id.
            [before, *_] = new_ids_before(found[at % len(found)].id.partition("_")[2][:32], next(self.distances))
            added = StoredItem(item=item.model_copy(update={"id": f"msg_{hex_of(before)}"}))
        [record] = await self.cloud.store.conversations.pack_items(self.tenant, self.id, [added], None)
        await self.cloud.table.put(record)

    @property
    def pk(self) -> str:
        return f"{self.tenant}#conversation:{self.id}"

    async def keys(self) -> list[str]:
        return [*(await self.cloud.store.conversations.list_keys(self.tenant, self.id)).keys]

    async def listed(self) -> Any:
        service = self.processes[0].worker_fixture.services.conversations
        return (await service.list_items(self.id, None, 100, "asc")).data


@pytest.mark.parametrize("layout", ["compatible", "spread"])
def test_warm_processes_read_what_cold_ones_would(own_cloud: Cloud, tenant: str, layout: KeyLayout) -> None:
    class OwnConversation(Conversation):
        cloud = own_cloud
        key_layout = layout
        tenants = (f"{tenant}{number}" for number in count())

    few = settings(max_examples=8, stateful_step_count=15, deadline=None, derandomize=True, database=None)
    run_state_machine_as_test(OwnConversation, settings=few)
