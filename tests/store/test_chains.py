import asyncio
import secrets
import zlib
from collections.abc import Sequence

import pytest
from tests.store.conftest import Cloud
from tests.store.response_samples import Responder, ids_of, response_header

from stint.domain.errors import NotFound
from stint.domain.ids import new_name, pack_name
from stint.domain.openai.stored_responses import ResponseHeader
from stint.store import items
from stint.store.log import LogItems
from stint.store.response_logs import Chain, ResponseLogs

TEXT = "Where did the ferry go, and when will it be back? " * 40


@pytest.fixture
def responder(cloud: Cloud, tenant: str) -> Responder:
    return Responder(cloud.store, tenant)


@pytest.fixture(scope="module")
def long(engine_cloud: Cloud) -> tuple[Responder, list[ResponseHeader]]:
    """A chain of 103 links, which tests only read."""
    responder = Responder(engine_cloud.store, "longchain")
    return responder, asyncio.run(responder.chain(103, TEXT, TEXT))


async def read(responder: Responder, header: ResponseHeader, max_bytes: int | None = None) -> Chain:
    return await responder.responses.chain(responder.tenant, header.response_id, max_bytes)


def stored_bytes(cloud: Cloud, tenant: str) -> int:
    return sum(items.size(items.decode(item)) for item in cloud.items(tenant))


@pytest.mark.parametrize("length", [1, 2, 16, 99, 100, 101, 102, 103])
async def test_a_chain_is_read_oldest_first(long: tuple[Responder, list[ResponseHeader]], length: int) -> None:
    responder, links = long

    chain = await read(responder, links[length - 1])

    assert [link.header for link in chain.links] == links[:length]
    assert chain.complete


@pytest.mark.parametrize(
    ("length", "rounds"),
    [(1, [1]), (2, [1, 1]), (17, [1, 16]), (101, [1, 100]), (102, [1, 1, 100]), (103, [1, 2, 100])],
)
async def test_a_chain_takes_a_query_for_each_link_in_two_rounds_for_100(
    cloud: Cloud,
    long: tuple[Responder, list[ResponseHeader]],
    length: int,
    rounds: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    responder, links = long
    seen: list[int] = []
    find_many = ResponseLogs.find_many

    async def count(
        logs: ResponseLogs, tenant: str, ids: Sequence[str], max_bytes: int | None = None
    ) -> list[LogItems | None]:
        seen.append(len(ids))
        return await find_many(logs, tenant, ids, max_bytes)

    monkeypatch.setattr(ResponseLogs, "find_many", count)
    cloud.forget()

    await read(responder, links[length - 1])

    assert cloud.calls == {"Query": length}
    assert seen == rounds


async def test_the_queries_of_a_round_are_concurrent(
    cloud: Cloud, long: tuple[Responder, list[ResponseHeader]]
) -> None:
    responder, links = long

    with cloud.proxy.held_in_rounds(["Query"], ["Query"] * 32):
        chain = await read(responder, links[32])

    assert len(chain.links) == 33


async def test_a_chain_of_100_stores_every_item_once(cloud: Cloud, responder: Responder) -> None:
    alone = Responder(responder.store, f"{responder.tenant}b")
    await alone.respond(secrets.token_hex(2_000), secrets.token_hex(2_000))
    one_link = stored_bytes(cloud, alone.tenant)
    tail = 50 * 25 + 120  # a header's ancestors on average, and what names the link before it
    texts = [secrets.token_hex(2_000) for _ in range(200)]

    last: ResponseHeader | None = None
    for question, answer in zip(texts[::2], texts[1::2], strict=True):
        last = await responder.respond(question, answer, behind=last)

    assert stored_bytes(cloud, responder.tenant) <= 100 * (one_link + tail)
    stored = " ".join(documents(cloud, responder.tenant))
    assert [stored.count(text) for text in texts] == [1] * 200


def documents(cloud: Cloud, tenant: str) -> list[str]:
    found = [items.decode(item) for item in cloud.items(tenant)]
    inline = [item["doc"] for item in found if "doc" in item]
    return [doc if isinstance(doc, str) else zlib.decompress(doc).decode() for doc in inline]


def test_a_header_names_at_most_100_links(long: tuple[Responder, list[ResponseHeader]]) -> None:
    _, links = long

    assert [link.depth for link in links] == list(range(103))
    assert [len(link.ancestors) for link in links[98:]] == [98, 99, 100, 1, 2]


@pytest.mark.parametrize(("depth", "units"), [(0, 1), (1, 1), (16, 1), (35, 1), (100, 2)])
async def test_a_header_takes_two_write_units_at_most_however_long_its_chain_is(
    cloud: Cloud, responder: Responder, depth: int, units: int
) -> None:
    ancestors = [pack_name(new_name("resp")) for _ in range(depth)]
    header = response_header("What is the weather tomorrow?").model_copy(update={"ancestors": ancestors})
    cloud.forget()

    await responder.responses.put(responder.tenant, header)

    assert cloud.units["BatchWriteItem"] == units + 1  # the list entry takes one


async def test_chains_fork_freely(responder: Responder) -> None:
    trunk = await responder.chain(20)
    branches = await asyncio.gather(*(responder.respond(f"branch {number}", behind=trunk[17]) for number in range(8)))
    twig = await responder.respond("twig", behind=branches[3])

    for branch in branches:
        assert ids_of((await read(responder, branch)).links) == [link.response_id for link in [*trunk[:18], branch]]
    assert [link.header for link in (await read(responder, twig)).links] == [*trunk[:18], branches[3], twig]
    assert len((await read(responder, trunk[-1])).links) == 20


@pytest.mark.parametrize("gone", [0, 15, 16, 17, 20])
async def test_a_deleted_link_breaks_what_continues_from_it_and_is_named(responder: Responder, gone: int) -> None:
    links = await responder.chain(21)
    await responder.responses.mark_deleted(responder.tenant, links[gone].response_id)

    with pytest.raises(NotFound, match=links[gone].response_id) as raised:
        await read(responder, links[-1])

    assert raised.value.code == "response_not_found"
    if gone:
        assert len((await read(responder, links[gone - 1])).links) == gone


async def test_a_bounded_chain_is_the_newest_links_that_fit(responder: Responder) -> None:
    links = await responder.chain(20)
    sizes = [link.size for link in (await read(responder, links[-1])).links]

    async def shown(max_bytes: int) -> tuple[list[str], bool]:
        chain = await read(responder, links[-1], max_bytes)
        return ids_of(chain.links), chain.complete

    made = [link.response_id for link in links]
    assert await shown(sum(sizes)) == (made, True)
    assert await shown(sum(sizes) - 1) == (made[1:], False)
    assert await shown(sum(sizes[-3:])) == (made[-3:], False)
    assert await shown(sum(sizes[-3:]) - 1) == (made[-2:], False)
    assert await shown(0) == (made[-1:], False)


async def test_a_bounded_chain_reads_no_blob_that_it_leaves_out(cloud: Cloud, responder: Responder) -> None:
    large = await responder.respond(secrets.token_urlsafe(400_000))
    small = await responder.respond(behind=large)
    cloud.forget()

    chain = await read(responder, small, max_bytes=100_000)

    assert (ids_of(chain.links), chain.complete) == ([small.response_id], False)
    assert cloud.calls == {"Query": 2}


@pytest.mark.parametrize("place", [0, 16, 17])
async def test_a_link_may_be_of_any_size(responder: Responder, place: int) -> None:
    links: list[ResponseHeader] = []
    for number in range(18):
        text = secrets.token_urlsafe(600_000) if number == place else "short"
        links.append(await responder.respond(text, behind=links[-1] if links else None))

    chain = await read(responder, links[-1])

    assert [link.header for link in chain.links] == links


async def test_a_chain_shows_what_was_written_a_moment_ago(responder: Responder) -> None:
    last: ResponseHeader | None = None
    for length in range(1, 20):
        last = await responder.respond(behind=last)

        assert len((await read(responder, last)).links) == length


class Known:
    """A caller that knows all links of a chain."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain

    def size_of(self, response_id: str, /) -> int | None:
        return self.chain.read[response_id].size

    def previous_of(self, response_id: str, /) -> str | None:
        place = self.chain.ids.index(response_id)
        return self.chain.ids[place - 1] if place else None

    def compacts(self, _: str, /) -> bool:
        return False

    def forget(self, _: str, /) -> None:
        raise AssertionError("No link was deleted.")


async def test_known_links_beyond_the_limit_are_not_checked(cloud: Cloud, responder: Responder) -> None:
    links = await responder.chain(20)
    whole = await read(responder, links[-1])
    limit = sum(link.size for link in whole.links[-3:])
    bodies: list[str] = []

    with cloud.proxy.watching(lambda _, body: bodies.append(body)):
        chain = await responder.responses.chain(responder.tenant, links[-1].response_id, limit, Known(whole))

    assert (chain.ids, chain.read, chain.complete) == (whole.ids[-3:], {}, False)
    assert [body.count('"meta"') for body in bodies] == [5]  # the newest one is not counted, because it always fits
