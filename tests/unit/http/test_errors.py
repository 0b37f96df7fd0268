import json
from collections.abc import Iterator

import pytest

from stint.domain import errors
from stint.domain.errors import ModelOverloaded, NotFound, NotSupported, StintError, StoreUnavailable
from stint.http.errors import STATUS, headers_of, respond, status_of


def kinds(parent: type[StintError] = StintError) -> Iterator[type[StintError]]:
    for kind in parent.__subclasses__():
        yield kind
        yield from kinds(kind)


def make(kind: type[StintError]) -> StintError:
    if kind is NotFound:
        return NotFound("Agent", "x")
    return kind() if kind is errors.Unexpected else kind("It went wrong.")


ALL = [StintError("It went wrong."), *map(make, kinds())]


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_every_error_has_a_status_and_strings_only(error: StintError) -> None:
    response = respond(error)

    body = json.loads(bytes(response.body))
    assert response.status_code == status_of(error) in STATUS.values()
    assert list(body) == ["error", "detail"]
    assert all(isinstance(value, str) for value in body["error"].values())
    assert body["detail"] == body["error"]["message"]


@pytest.mark.parametrize("error", ALL, ids=lambda error: type(error).__name__)
def test_what_has_begun_a_turn_or_is_the_callers_fault_is_not_to_be_repeated(error: StintError) -> None:
    before = headers_of(error)
    error.turn_id = "turn"
    after = headers_of(error)
    error.turn_id = None

    hopeless = status_of(error) < 500 or isinstance(error, NotSupported)
    assert (before.get("x-should-retry") == "false") is hopeless
    assert after["x-should-retry"] == "false"


def test_retry_after_is_the_providers_or_one_second_while_nothing_was_begun() -> None:
    begun = StoreUnavailable("It went wrong.")
    begun.turn_id = "turn"
    throttled = ModelOverloaded("It went wrong.", retry_after=7.4)
    throttled.turn_id = "turn"

    assert headers_of(StoreUnavailable("It went wrong."))["retry-after"] == "1"
    assert "retry-after" not in headers_of(begun)
    assert headers_of(throttled)["retry-after"] == "7"
    assert headers_of(ModelOverloaded("It went wrong.", retry_after=0.2))["retry-after"] == "1"


def test_a_new_kind_of_error_has_the_status_of_its_parent() -> None:
    class Vanished(NotFound):
        pass

    assert status_of(Vanished("Agent", "x")) == 404
