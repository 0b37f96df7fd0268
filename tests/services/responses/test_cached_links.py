"""Chains in a warm process, which remembers the ended links that it has read."""

import asyncio
from typing import Any

import pytest
from tests.script_model import Part, called, said, script
from tests.services.conftest import MakeWorkerFixture
from tests.services.responses.responder import Responder
from tests.services.worker_fixture import FUNCTION, MCP_TOOL
from tests.store.conftest import Cloud

from stint.domain.errors import ContextLengthExceeded, InvalidRequest
from stint.domain.inference import ReasoningChunk
from stint.domain.openai.opaque import OpaqueReader
from stint.services.responses.context import Contexts
from stint.services.responses.link_cache import LinkCache
from stint.services.responses.links import Context

THOUGHT: list[Part] = [ReasoningChunk("Plums, I think."), *said("Plums")]
APPROVED = MCP_TOOL | {"require_approval": "always"}


@pytest.fixture
def responder(make_worker_fixture: MakeWorkerFixture) -> Responder:
    return Responder(make_worker_fixture(script(*(said(f"re {number}") for number in range(60)))))


def contexts_of(responder: Responder, links: LinkCache | None = None, history_bytes: int = 1_000_000) -> Contexts:
    """Return the contexts of a process with this memory, or a new one."""
    fixture = responder.worker_fixture
    recovery = fixture.services.background.recovery
    cache = links if links is not None else LinkCache()
    return Contexts(fixture.tenant, fixture.store, recovery, recovery.opaque, 30, history_bytes, cache)


async def grow(responder: Responder, length: int, last: str = "", **fields: Any) -> list[str]:
    """Create responses, each of which continues from the previous one, and return their ids."""
    made: list[str] = []
    for number in range(length):
        behind = {"previous_response_id": last} if last else {}
        last = (await responder.respond(f"said {number}", **behind, **fields)).response.id
        made.append(last)
    return made


async def read(contexts: Contexts, response_id: str, *, shortens: bool = False) -> Context:
    return await contexts.from_response(response_id, shortens=shortens)


def state(context: Context) -> tuple[object, ...]:
    """Return all that a context is made of."""
    reader, transcript = context.reader, context.reader.transcript
    return (
        transcript.messages,
        transcript.open,
        transcript.call_ids,
        transcript.answered,
        context.known,
        context.function_calls,
        context.excused,
        context.ancestors,
        context.depth,
        reader.opaque.left,
        reader.lenient,
        reader.approved,
    )


async def test_a_context_of_cached_links_equals_one_that_is_read(responder: Responder) -> None:
    links, cache = await grow(responder, 6), LinkCache()
    for last in (links[2], links[4], links[5], links[5]):
        warm = await read(contexts_of(responder, cache), last)

        assert state(warm) == state(await read(contexts_of(responder), last))


async def test_links_with_calls_approvals_reasoning_and_failures_are_cached_as_they_are_read(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    failure: list[Part] = [RuntimeError("no")]
    answers = [called("ask_user"), THOUGHT, called("buy"), said("Bought"), failure, said("ok"), said("ok")]
    responder = Responder(make_worker_fixture(script(*answers)))
    tools = {"tools": [FUNCTION, APPROVED], "include": ["reasoning.encrypted_content"]}
    ids, cache = [(await responder.respond("go", **tools)).response.id], LinkCache()
    output = {"type": "function_call_output", "call_id": "c0", "output": "yes"}
    inputs: list[Any] = [[output], "buy", None, "fail", "again", "end"]
    for number, said_next in enumerate(inputs):
        given = said_next
        if said_next is None:
            asked = (await responder.get(ids[-1])).output[-1].id
            given = [{"type": "mcp_approval_response", "approval_request_id": asked, "approve": True}]
        ids.append((await responder.respond(given, previous_response_id=ids[-1], **tools)).response.id)
        warm = await read(contexts_of(responder, cache), ids[-1])

        assert state(warm) == state(await read(contexts_of(responder), ids[-1])), number
        assert state(await read(contexts_of(responder, cache), ids[-1])) == state(warm), number


async def test_opaque_texts_of_cached_links_count_towards_the_limit_of_a_request(
    make_worker_fixture: MakeWorkerFixture,
) -> None:
    responder = Responder(make_worker_fixture(script(THOUGHT, said(), said())))
    kept = (await responder.respond(store=False, include=["reasoning.encrypted_content"])).response.output
    sent = [item.model_dump(mode="json", exclude_none=True) for item in kept]
    first = (await responder.respond([*sent, {"role": "user", "content": "go"}])).response.id
    cache = LinkCache()

    left = [(await read(contexts_of(responder, cache), first)).reader.opaque.left for _ in range(2)]

    assert left[0] == left[1] < OpaqueReader().left


async def test_a_context_of_cached_links_is_the_requests_own(responder: Responder) -> None:
    [first], cache = await grow(responder, 1), LinkCache()
    contexts = contexts_of(responder, cache)
    for _ in range(2):
        context = await read(contexts, first)
        before = state(context)[0]
        context.reader.read([*(await responder.stored(first)).header.input])
        context.reader.transcript.remove_input()
        context.known.clear()
        context.excused.add("c9")

        assert len(context.reader.transcript.messages) == 3
        assert before is not (await read(contexts, first)).reader.transcript.messages
        assert state(await read(contexts, first)) == state(await read(contexts_of(responder), first))


@pytest.mark.parametrize("gone", [0, 2, 4, 5])
async def test_a_link_that_another_process_deletes_breaks_the_chain_at_once(responder: Responder, gone: int) -> None:
    links, other = await grow(responder, 6), Responder(responder.worker_fixture.other_process(script(said())))
    await read(responder.responses.contexts, links[-1])
    await other.worker_fixture.services.stored_responses.delete(links[gone])

    with pytest.raises(InvalidRequest, match=links[gone]) as refused:
        await responder.respond(previous_response_id=links[-1])

    assert refused.value.code == "previous_response_not_found"
    assert responder.worker_fixture.links.get(responder.worker_fixture.tenant, links[gone]) is None


async def test_a_deleted_response_leaves_the_memory_of_its_process(responder: Responder) -> None:
    links, fixture = await grow(responder, 2), responder.worker_fixture
    assert fixture.links.get(fixture.tenant, links[0]) is not None

    await fixture.services.stored_responses.delete(links[0])

    assert fixture.links.get(fixture.tenant, links[0]) is None


async def test_a_link_deleted_between_the_check_and_the_answer_breaks_the_next_response(responder: Responder) -> None:
    links = await grow(responder, 3)
    run = await responder.start("end", previous_response_id=links[-1])
    await responder.worker_fixture.store.responses.mark_deleted(responder.worker_fixture.tenant, links[1])

    last = (await responder.play(run)).response

    assert last.status == "completed"
    with pytest.raises(InvalidRequest, match=links[1]):
        await responder.respond(previous_response_id=last.id)


async def test_a_link_that_another_process_ends_is_read_and_then_cached(responder: Responder) -> None:
    fixture = responder.worker_fixture
    queued = await fixture.create("said before")
    with pytest.raises(Exception, match="queued"):
        await read(responder.responses.contexts, queued)
    assert fixture.links.get(fixture.tenant, queued) is None

    await fixture.other_process(script(said("by the worker"))).run(queued)
    context = await read(responder.responses.contexts, queued)

    assert len(context.reader.transcript.messages) == 2
    assert fixture.links.get(fixture.tenant, queued) is not None


async def test_a_link_that_its_continuation_has_to_end_is_not_cached(
    responder: Responder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture = responder.worker_fixture
    run = await responder.start("cut off", seconds=0.001)
    monkeypatch.setattr("time.time", lambda: run.log.response.header.until + 1)

    context = await read(responder.responses.contexts, run.response_id)

    assert (await responder.stored(run.response_id)).ending is not None
    assert len(context.reader.transcript.messages) == 1
    assert fixture.links.get(fixture.tenant, run.response_id) is None
    await responder.play(run)


async def test_a_cached_link_is_no_other_tenants(responder: Responder, cloud: Cloud) -> None:
    [link], cache = await grow(responder, 1), LinkCache()
    await read(contexts_of(responder, cache), link)
    contexts = contexts_of(responder, cache)
    stranger = Contexts(
        "someone-else", contexts.store, contexts.recovery, contexts.opaque, 30, contexts.history_bytes, cache
    )

    with pytest.raises(InvalidRequest, match=link):
        await read(stranger, link)

    assert cache.get("someone-else", link) is None


async def test_forks_of_a_chain_are_continued_concurrently_in_one_process(responder: Responder) -> None:
    trunk = await grow(responder, 5)
    ends = [trunk[4], trunk[2], trunk[4], trunk[0]]

    branches = await asyncio.gather(*(grow(responder, 3, end) for end in ends))

    for branch in branches:
        warm = await read(responder.responses.contexts, branch[-1])
        assert state(warm) == state(await read(contexts_of(responder), branch[-1]))


async def test_a_chain_whose_oldest_links_were_dropped_reads_only_these(responder: Responder, cloud: Cloud) -> None:
    links, cache = await grow(responder, 6), LinkCache()
    contexts = contexts_of(responder, cache)
    await read(contexts, links[-1])
    for dropped in links[1:3]:
        cache.forget(contexts.tenant, dropped)
    cloud.forget()

    context = await read(contexts, links[-1])

    assert cloud.calls == {"Query": 2, "BatchGetItem": 2}
    assert state(context) == state(await read(contexts_of(responder), links[-1]))


async def test_the_limit_of_a_context_counts_cached_links_like_read_ones(responder: Responder) -> None:
    links, cache = await grow(responder, 4), LinkCache()
    await read(contexts_of(responder, cache), links[-1])
    fixture = responder.worker_fixture
    sizes = [link.size for link in (await fixture.store.responses.chain(fixture.tenant, links[-1])).links]

    for limit in (sum(sizes), sum(sizes) - 1, sum(sizes[2:]), sum(sizes[2:]) - 1, 0):
        warm, cold = contexts_of(responder, cache, limit), contexts_of(responder, None, limit)

        context = await read(warm, links[-1], shortens=True)

        assert state(context) == state(await read(cold, links[-1], shortens=True)), limit
        if limit < sum(sizes):
            with pytest.raises(ContextLengthExceeded):
                await read(warm, links[-1])


async def test_a_shortened_context_is_not_cached(responder: Responder) -> None:
    links, cache = await grow(responder, 3), LinkCache()

    await read(contexts_of(responder, cache, 1_500), links[-1], shortens=True)

    assert cache.bytes == 0


async def test_a_deleted_link_beyond_the_limit_breaks_no_shortened_chain(responder: Responder) -> None:
    links, cache = await grow(responder, 4), LinkCache()
    await read(contexts_of(responder, cache), links[-1])
    await responder.worker_fixture.store.responses.mark_deleted(responder.worker_fixture.tenant, links[0])

    context = await read(contexts_of(responder, cache, 0), links[-1], shortens=True)

    assert len(context.reader.transcript.messages) == 2
