import secrets
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.store.conftest import Cloud
from tests.store.response_samples import Responder, ids_of

from stint.domain.errors import NotFound
from stint.domain.openai.stored_responses import ResponseHeader
from stint.store import items
from stint.store.log import LogItems
from stint.store.response_logs import ResponseLogs
from stint.store.responses import Chain

TEXT = "Where did the ferry go, and when will it be back? " * 40


@pytest.fixture
def responder(cloud: Cloud, tenant: str) -> Responder:
    return Responder(cloud.store, tenant)


@pytest.fixture(scope="module")
def long(engine_cloud: Cloud) -> tuple[Responder, list[ResponseHeader]]:
    """A chain of 100 links, which tests only read."""
    responder = Responder(engine_cloud.store, "longchain")
    return responder, responder.chain(100, TEXT, TEXT)


def read(responder: Responder, header: ResponseHeader, max_bytes: int | None = None) -> Chain:
    return responder.responses.chain(responder.tenant, header.response_id, max_bytes)


def stored_bytes(cloud: Cloud, tenant: str) -> int:
    return sum(items.size(items.decode(item)) for item in cloud.items(tenant))


@pytest.mark.parametrize("length", [1, 2, 16, 17, 18, 33, 100])
def test_a_chain_is_read_oldest_first(long: tuple[Responder, list[ResponseHeader]], length: int) -> None:
    responder, links = long

    chain = read(responder, links[length - 1])

    assert [link.header for link in chain.links] == links[:length]
    assert chain.complete


@pytest.mark.parametrize("length", [1, 16, 17, 32, 33, 100])
def test_a_chain_takes_a_query_for_each_link_in_few_rounds(
    cloud: Cloud, long: tuple[Responder, list[ResponseHeader]], length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    responder, links = long
    rounds: list[int] = []
    find_many = ResponseLogs.find_many

    def count(logs: ResponseLogs, tenant: str, ids: Sequence[str]) -> list[LogItems | None]:
        rounds.append(len(ids))
        return find_many(logs, tenant, ids)

    monkeypatch.setattr(ResponseLogs, "find_many", count)
    cloud.forget()

    read(responder, links[length - 1])

    assert cloud.calls == {"Query": length}
    assert sum(rounds) == length
    assert max(rounds) <= 16
    assert len(rounds) <= -(-length // 16) + 1


def test_a_chain_of_100_stores_every_item_once(cloud: Cloud, responder: Responder) -> None:
    alone = Responder(responder.store, f"{responder.tenant}b")
    alone.respond(secrets.token_hex(2_000), secrets.token_hex(2_000))
    one_link = stored_bytes(cloud, alone.tenant)
    tail = 16 * 25 + 120  # a header's ancestors, and what names the link before it
    texts = [secrets.token_hex(2_000) for _ in range(200)]

    last: ResponseHeader | None = None
    for question, answer in zip(texts[::2], texts[1::2], strict=True):
        last = responder.respond(question, answer, behind=last)

    assert stored_bytes(cloud, responder.tenant) <= 100 * (one_link + tail)
    stored = " ".join(documents(cloud, responder.tenant))
    assert [stored.count(text) for text in texts] == [1] * 200


def documents(cloud: Cloud, tenant: str) -> list[str]:
    found = [items.decode(item) for item in cloud.items(tenant)]
    inline = [item["doc"] for item in found if "doc" in item]
    return [doc if isinstance(doc, str) else zlib.decompress(doc).decode() for doc in inline]


def test_no_header_grows_with_the_chain(long: tuple[Responder, list[ResponseHeader]]) -> None:
    _, links = long

    assert [link.depth for link in links] == list(range(100))
    assert max(len(link.ancestors) for link in links) == 16
    assert [len(link.ancestors) for link in links[30:34]] == [14, 15, 16, 1]


def test_chains_fork_freely(responder: Responder) -> None:
    trunk = responder.chain(20)
    with ThreadPoolExecutor(8) as threads:
        branches = list(threads.map(lambda number: responder.respond(f"branch {number}", behind=trunk[17]), range(8)))
    twig = responder.respond("twig", behind=branches[3])

    for branch in branches:
        assert ids_of(read(responder, branch).links) == [link.response_id for link in [*trunk[:18], branch]]
    assert [link.header for link in read(responder, twig).links] == [*trunk[:18], branches[3], twig]
    assert len(read(responder, trunk[-1]).links) == 20


@pytest.mark.parametrize("gone", [0, 15, 16, 17, 20])
def test_a_deleted_link_breaks_what_continues_from_it_and_is_named(responder: Responder, gone: int) -> None:
    links = responder.chain(21)
    responder.responses.mark_deleted(responder.tenant, links[gone].response_id)

    with pytest.raises(NotFound, match=links[gone].response_id) as raised:
        read(responder, links[-1])

    assert raised.value.code == "response_not_found"
    if gone:
        assert len(read(responder, links[gone - 1]).links) == gone


def test_a_bounded_chain_is_the_newest_links_that_fit(responder: Responder) -> None:
    links = responder.chain(20)
    sizes = [link.size for link in read(responder, links[-1]).links]

    def shown(max_bytes: int) -> tuple[list[str], bool]:
        chain = read(responder, links[-1], max_bytes)
        return ids_of(chain.links), chain.complete

    made = [link.response_id for link in links]
    assert shown(sum(sizes)) == (made, True)
    assert shown(sum(sizes) - 1) == (made[1:], False)
    assert shown(sum(sizes[-3:])) == (made[-3:], False)
    assert shown(sum(sizes[-3:]) - 1) == (made[-2:], False)
    assert shown(0) == (made[-1:], False)


def test_a_bounded_chain_reads_no_blob_that_it_leaves_out(cloud: Cloud, responder: Responder) -> None:
    large = responder.respond(secrets.token_urlsafe(400_000))
    small = responder.respond(behind=large)
    cloud.forget()

    chain = read(responder, small, max_bytes=100_000)

    assert (ids_of(chain.links), chain.complete) == ([small.response_id], False)
    assert cloud.calls == {"Query": 2}


@pytest.mark.parametrize("place", [0, 16, 17])
def test_a_link_may_be_of_any_size(responder: Responder, place: int) -> None:
    links: list[ResponseHeader] = []
    for number in range(18):
        text = secrets.token_urlsafe(600_000) if number == place else "short"
        links.append(responder.respond(text, behind=links[-1] if links else None))

    chain = read(responder, links[-1])

    assert [link.header for link in chain.links] == links


def test_a_chain_shows_what_was_written_a_moment_ago(responder: Responder) -> None:
    last: ResponseHeader | None = None
    for length in range(1, 20):
        last = responder.respond(behind=last)

        assert len(read(responder, last).links) == length
