import time
from pathlib import Path

import httpx
import pytest
from tests.system.conftest import Api


def appears(path: Path, within: float) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if path.exists():
            return True
        time.sleep(0.02)
    return False


def test_bytes_arrive_as_the_function_sends_them(api: Api) -> None:
    received = []

    with api.client.stream("GET", "/stream/step-by-step") as response:
        for chunk in response.iter_raw():
            received.append(chunk)
            (api.marks / chunk.decode()).touch()  # only now the next one is sent

    assert received == [b"one", b"two", b"three"]


def test_status_and_headers_come_from_the_prelude(api: Api) -> None:
    response = api.client.get("/stream/slowly")

    assert response.status_code == 201
    assert response.headers["content-type"] == "text/x"
    assert response.headers.get_list("set-cookie") == ["a=1", "b=2"]
    assert response.headers["transfer-encoding"] == "chunked"
    assert response.headers["x-amzn-requestid"]


@pytest.mark.parametrize("action", ["fail-early", "long-prelude"])
def test_a_failure_before_the_first_byte_is_a_502(api: Api, action: str) -> None:
    response = api.client.get(f"/stream/{action}")

    assert response.status_code == 502
    assert b"unseen" not in response.content


def test_a_function_that_dies_in_the_stream_cuts_the_connection(api: Api) -> None:
    received: list[bytes] = []

    with pytest.raises(httpx.RemoteProtocolError), api.client.stream("GET", "/stream/fail-late") as response:
        received.extend(response.iter_raw())

    assert received == [b"begun"]


def test_a_stream_beyond_the_time_out_of_its_route_is_cut(api: Api) -> None:
    received: list[bytes] = []

    with pytest.raises(httpx.RemoteProtocolError), api.client.stream("GET", "/short/stall") as response:
        received.extend(response.iter_raw())

    assert received == [b"begun"]


def test_a_client_that_goes_away_does_not_stop_the_function(api: Api) -> None:
    mark = api.marks / "streamed-to-the-end"
    mark.unlink(missing_ok=True)

    with api.client.stream("GET", "/stream/slowly") as response:
        next(response.iter_raw())

    assert not mark.exists()
    assert appears(mark, within=30)
