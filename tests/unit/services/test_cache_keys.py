"""Cache keys: what they are derived from, and what they do not show."""

import re
from collections.abc import Iterator

import pytest

from stint.caller import set_principal
from stint.domain.errors import StoreUnavailable
from stint.domain.principals import Principal
from stint.services.runs.cache_keys import CacheKeys

SECRET = b"s" * 32


@pytest.fixture(autouse=True)
def _no_principal_afterwards() -> Iterator[None]:
    yield
    set_principal(None)


def keys_of(tenant: str, secret: bytes = SECRET) -> CacheKeys:
    async def read_secret() -> bytes:
        raise AssertionError

    return CacheKeys(tenant, read_secret, secret)


def test_a_key_differs_by_tenant_kind_value_and_secret() -> None:
    found = [
        keys_of("acme").derive("session", "a"),
        keys_of("other").derive("session", "a"),
        keys_of("acme").derive("conversation", "a"),
        keys_of("acme").derive("session", "b"),
        keys_of("acme", b"t" * 32).derive("session", "a"),
    ]

    assert len(set(found)) == len(found)
    assert found[0] == keys_of("acme").derive("session", "a")


def test_a_key_has_32_hexadecimal_digits_also_of_long_and_strange_values() -> None:
    for value in ("acme", "k" * 64, "é\0session\0", "👋"):
        key = keys_of("acme").derive("prompt_cache_key", value)
        assert re.fullmatch("[0-9a-f]{32}", key)


def test_the_calls_of_a_caller_have_its_own_key_or_one_of_its_api_key_or_name() -> None:
    keys = keys_of("acme")
    nobody = keys.derive_of_caller()
    set_principal(Principal("acme", "ann", frozenset({"use"})))
    ann = keys.derive_of_caller()
    set_principal(Principal("acme", "ann", frozenset({"use"}), "k1"))
    with_key = keys.derive_of_caller()
    set_principal(Principal("acme", "k1", frozenset({"use"})))

    assert len({nobody, ann, with_key, keys.derive_of_caller(), keys.derive_of_caller("k1")}) == 5


async def test_the_secret_is_read_once_and_there_are_no_keys_while_it_cannot_be_read() -> None:
    reads = 0

    async def read_secret() -> bytes:
        nonlocal reads
        reads += 1
        if reads == 1:
            raise StoreUnavailable("The table does not answer.")
        return SECRET

    keys = CacheKeys("acme", read_secret)

    assert [await keys.prepare() for _ in range(3)] == [False, True, True]
    assert reads == 2


def test_a_secret_is_not_shown() -> None:
    assert "sss" not in repr(keys_of("acme"))
