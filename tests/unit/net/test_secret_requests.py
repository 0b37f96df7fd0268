"""Requests that carry a secret: the address of a name may change between its check and the connection."""

import httpcore
import pytest

from stint.net.guard import Guard
from stint.net.secret_requests import EndpointFailed, open_client

NAME, INSIDE, OUTSIDE = "inside.example", "127.0.0.1", "93.184.215.14"


async def test_a_name_that_moves_outside_after_its_check_gets_no_secret_in_clear(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, called = [INSIDE, INSIDE], list[str]()

    async def resolve(_: str, __: int) -> list[str]:
        return [answers.pop() if answers else OUTSIDE]

    async def connect(_: object, host: str, *__: object, **___: object) -> None:
        called.append(host)
        raise httpcore.ConnectError("No connection is made.")

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect)
    guard, url = Guard([NAME], resolve=resolve), f"http://{NAME}/token"

    with pytest.raises(EndpointFailed, match="url_not_allowed"):
        async with open_client(guard, url, {}) as client:
            await client.post(url, data={"refresh_token": "secret"})
    assert answers == called == []
