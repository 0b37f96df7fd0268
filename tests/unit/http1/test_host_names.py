"""The look-up of hosts, on the event loop of the runtime."""

import asyncio
import socket
import threading
from typing import Any

import pytest
import uvloop

from stint.http1.connector import find_addresses

SLOW = 4
"""uvloop's own method looks up two names at once."""


def test_slow_names_delay_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    asked = threading.Semaphore(0)

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        asked.release()
        if host == "slow.test":
            assert answered.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"192.0.2.{number}", port)) for number in (1, 2, 1)]

    async def find() -> list[str]:
        slow = [asyncio.create_task(find_addresses("slow.test", 443)) for _ in range(SLOW)]
        await asyncio.to_thread(lambda: [asked.acquire(timeout=60) for _ in range(SLOW)])
        found = await find_addresses("fast.test", 443)
        answered.set()
        await asyncio.gather(*slow)
        return found

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    assert uvloop.run(find()) == ["192.0.2.1", "192.0.2.2"]
