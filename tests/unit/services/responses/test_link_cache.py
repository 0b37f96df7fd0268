import random
from concurrent.futures import ThreadPoolExecutor

from stint.domain.inference import UserInput
from stint.services.responses.link_cache import NOTE_BYTES, CachedConversation, CachedLink, LinkCache, TenantLinks

RECORD = {"pk": "t#conversation:conv_a", "sk": "item:1", "doc": "{}"}


def link(size: int = 100, previous: str | None = None) -> CachedLink:
    return CachedLink(
        previous=previous,
        size=size,
        start=0,
        messages=(UserInput("Hello"),),
        open={},
        answered=True,
        opaque_left=0,
        call_ids=(),
        item_ids=(),
        function_calls=(),
        excused=(),
        sources={},
    )


def test_the_least_recently_used_links_are_dropped_first() -> None:
    cache = LinkCache(3 * link().memory)
    for name in "abc":
        cache.put("t", name, link())
    cache.get("t", "a")
    cache.put("t", "d", link())

    assert [name for name in "abcd" if cache.get("t", name)] == ["a", "c", "d"]


def test_all_links_together_stay_below_the_bound() -> None:
    cache, sizes = LinkCache(50_000), random.Random(1)
    for number in range(500):
        cache.put("t", f"resp_{number}", link(sizes.randrange(10_000)))
        cache.note_previous("t", f"resp_{number}n", "resp_0")

        assert cache.bytes <= 50_000
    assert cache.bytes > 0


def test_a_link_over_the_bound_is_not_kept_and_drops_no_other() -> None:
    cache = LinkCache(20_000)
    cache.put("t", "small", link())

    cache.put("t", "large", link(1_000_000))

    assert (cache.get("t", "large"), cache.bytes) == (None, link().memory)


def test_a_link_that_is_put_again_counts_once() -> None:
    cache = LinkCache()
    for _ in range(3):
        cache.put("t", "a", link())
        assert cache.bytes == link().memory

    cache.forget("t", "a")
    cache.forget("t", "a")

    assert cache.bytes == 0


def test_tenants_do_not_share_links() -> None:
    cache = LinkCache()
    cache.put("one", "a", link(previous="b"))

    assert cache.get("other", "a") is None
    assert cache.previous_of("other", "a") is None
    cache.forget("other", "a")
    assert cache.get("one", "a") is not None


def test_a_response_that_runs_has_only_its_previous_one() -> None:
    cache = LinkCache()
    cache.note_previous("t", "b", "a")

    assert (cache.get("t", "b"), cache.previous_of("t", "b"), cache.bytes) == (None, "a", NOTE_BYTES)
    cache.put("t", "b", link(previous="a"))
    assert (cache.previous_of("t", "b"), cache.bytes) == ("a", link().memory)


def test_a_request_keeps_the_links_that_it_has_used() -> None:
    cache = LinkCache(link().memory)
    cache.put("t", "a", link())
    used = TenantLinks(cache, "t")

    assert used.size_of("a") == 100
    cache.put("t", "b", link())

    assert cache.get("t", "a") is None
    assert list(used.used) == ["a"]


def test_conversations_and_links_share_the_bound() -> None:
    conversation = CachedConversation(link(), keys=("item:1",))
    cache = LinkCache(conversation.memory + link().memory)
    cache.put_conversation("t", "conv_a", conversation)
    cache.put("t", "resp_a", link())
    assert cache.get_conversation("t", "conv_a") is conversation

    cache.put("t", "resp_b", link())

    assert [cache.get("t", name) is not None for name in ("resp_a", "resp_b", "conv_a")] == [False, True, False]
    assert cache.get_conversation("t", "conv_a") is conversation


def test_tenants_do_not_share_conversations() -> None:
    cache = LinkCache()
    cache.put_conversation("one", "conv_a", CachedConversation(link()))

    cache.note_items("other", "conv_a", [RECORD])
    cache.forget("other", "conv_a")

    assert cache.get_conversation("other", "conv_a") is None
    assert cache.get_conversation("one", "conv_a") == CachedConversation(link())


def test_records_of_a_conversation_that_is_not_known_are_not_kept() -> None:
    cache = LinkCache()

    cache.note_items("t", "conv_a", [RECORD])

    assert cache.bytes == 0


def test_added_records_of_a_conversation_count() -> None:
    cache = LinkCache()
    cache.put_conversation("t", "conv_a", CachedConversation(link()))
    before = cache.bytes

    cache.note_items("t", "conv_a", [RECORD, {"sk": "item:2", "blob": "kept/t/x"}])

    found = cache.get_conversation("t", "conv_a")
    assert found is not None
    assert found.later == {"item:1": RECORD}  # an object in S3 may be deleted
    assert before < cache.bytes == found.memory
    cache.forget("t", "conv_a")
    assert cache.bytes == 0


def test_threads_may_use_a_cache_at_once() -> None:
    cache = LinkCache(20 * link().memory)

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(2_000):
            name = str(chance.randrange(50))
            match chance.randrange(4):
                case 0:
                    cache.put("t", name, link())
                case 1:
                    cache.get("t", name)
                case 2:
                    cache.note_previous("t", name, "0")
                case _:
                    cache.forget("t", name)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    for number in range(50):
        cache.forget("t", str(number))

    assert cache.bytes == 0
