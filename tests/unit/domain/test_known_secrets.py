import asyncio
from collections.abc import Iterator

import pytest

from stint.domain.errors import InvalidRequest, StintError
from stint.domain.known_secrets import (
    begin_request,
    known_secrets,
    redact,
    redactor_of_models_text,
    remember,
    remember_own,
)
from stint.domain.redaction import MOST_KNOWN, forms_of_own


@pytest.fixture(autouse=True)
def request_of_its_own() -> Iterator[None]:
    begin_request()
    yield
    begin_request()


def test_an_error_is_made_without_the_secrets_that_are_known() -> None:
    remember(["abcdefgh", "x"])

    error = InvalidRequest("x said abcdefgh", param="x")

    assert (error.message, str(error), error.args[0]) == ("x said ***", "x said ***", "x said ***")


def test_a_request_forgets_the_secrets_of_the_one_before() -> None:
    remember(["abcdefgh"])
    begin_request()

    assert known_secrets() == frozenset()
    assert redact("abcdefgh") == "abcdefgh"
    assert StintError("abcdefgh").message == "abcdefgh"


async def test_tasks_and_threads_of_a_request_share_what_they_get_to_know() -> None:
    async def learn(secret: str) -> None:
        remember([secret])

    await asyncio.gather(learn("abcdefgh"), asyncio.to_thread(remember, ["ijklmnop"]))

    assert redact("abcdefgh ijklmnop") == "*** ***"


async def test_two_requests_side_by_side_know_their_own() -> None:
    async def serve(secret: str) -> str:
        begin_request()
        remember([secret])
        await asyncio.sleep(0)
        return redact("abcdefgh ijklmnop")

    assert [*await asyncio.gather(serve("abcdefgh"), serve("ijklmnop"))] == ["*** ijklmnop", "abcdefgh ***"]


def test_keys_of_the_server_are_no_reason_to_look_through_a_models_text() -> None:
    remember(["abcdefgh"], in_models_text=False)

    assert redactor_of_models_text() is None
    assert redact("abcdefgh") == "***"
    remember(["ijklmnop"])
    assert redactor_of_models_text() is not None


def test_the_forms_of_a_key_of_the_server_are_kept_for_later_requests_and_those_of_a_caller_are_not() -> None:
    forms_of_own.cache_clear()
    for _ in range(3):
        begin_request()
        remember_own("key/of/the/server")
        remember(["key/of/a/caller"])
        assert redact(r"key\/of\/the\/server key\/of\/a\/caller") == "*** ***"

    assert forms_of_own.cache_info().misses == forms_of_own.cache_info().currsize == 1


def test_what_is_known_is_bounded() -> None:
    remember(f"{n:08}" for n in range(MOST_KNOWN))

    assert len(known_secrets()) == MOST_KNOWN // 8
