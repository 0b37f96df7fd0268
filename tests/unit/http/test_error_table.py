import json
from collections.abc import Iterator

import pytest

from stint.domain import errors
from stint.domain.errors import (
    InvalidRequest,
    ModelOverloaded,
    ModelUnauthorized,
    NotFound,
    NotMarkedDeleted,
    NotSupported,
    RateLimited,
    RateLimitExceeded,
    RequestRunning,
    StintError,
    StoreUnavailable,
    rename_param,
)
from stint.http.errors import STATUS, headers_of, respond, status_of
from stint.http.json_rpc import INTERNAL_ERROR, JsonRpcError
from stint.retrieval.port import TextTooLong


def kinds(parent: type[StintError] = StintError) -> Iterator[type[StintError]]:
    for kind in parent.__subclasses__():
        yield kind
        yield from kinds(kind)


def make(kind: type[StintError]) -> StintError:
    if kind in (NotFound, NotMarkedDeleted):
        return kind("Agent", "x")
    if issubclass(kind, JsonRpcError):
        return JsonRpcError(INTERNAL_ERROR, "It went wrong.")
    if kind is TextTooLong:
        return TextTooLong("It went wrong.", 10)
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

    hopeless = status_of(error) < 500 or isinstance(error, NotSupported | ModelUnauthorized)
    hopeless = hopeless and not isinstance(error, RateLimited | RateLimitExceeded | RequestRunning)
    assert (before.get("x-should-retry") == "false") is hopeless
    assert after["x-should-retry"] == "false"


def test_retry_after_is_at_least_the_providers_and_one_second() -> None:
    """This holds while nothing has begun."""
    begun = StoreUnavailable("It went wrong.")
    begun.turn_id = "turn"
    throttled = ModelOverloaded("It went wrong.", retry_after=7.4)
    throttled.turn_id = "turn"

    assert headers_of(StoreUnavailable("It went wrong."))["retry-after"] == "1"
    assert "retry-after" not in headers_of(begun)
    assert headers_of(throttled)["retry-after"] == "8"
    assert headers_of(ModelOverloaded("It went wrong.", retry_after=0.2))["retry-after"] == "1"


def test_a_rate_limit_says_when_to_ask_again_whether_or_not_a_turn_was_begun() -> None:
    begun = RateLimited("Too often.", retry_after=7.4)
    begun.turn_id = "turn"
    without_quota = RateLimited("Not paid for.", code="insufficient_quota")

    assert headers_of(RateLimited("Too often.")) == {"retry-after": "1"}
    assert headers_of(begun) == {"retry-after": "8", "x-should-retry": "false"}
    assert headers_of(without_quota)["x-should-retry"] == "false"


@pytest.mark.parametrize(
    ("param", "renamed"),
    [
        ("messages", "input"),
        ("messages[1].content", "input"),
        ("messages.1", "input"),
        ("top_p", "top_p"),
        (None, None),
    ],
)
def test_a_field_of_a_provider_has_the_name_that_the_api_gives_it(param: str | None, renamed: str | None) -> None:
    assert rename_param(param, {"messages": "input"}) == renamed


def test_a_new_kind_of_error_has_the_status_of_its_parent() -> None:
    class Vanished(NotFound):
        pass

    assert status_of(Vanished("Agent", "x")) == 404


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    error = InvalidRequest(f"Model {'x' * 1_000_000!r} is unknown. Choose another one.", param="y" * 1_000_000)

    assert error.message.startswith("Model 'xxx")
    assert error.message.endswith("is unknown. Choose another one.")
    assert len(error.message) < 4_000
    assert error.param is not None
    assert len(error.param) < 500
