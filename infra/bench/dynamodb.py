"""`python -m infra.bench.dynamodb`: CPU time and memory of DynamoDB calls, compared with botocore.

A process on loopback answers GetItem with one record, so the figures are of the client alone. Each run of a client is a
process of its own.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, cast

from infra.bench.report import Row, render

Caller = Callable[[], Awaitable[object]]
Make = Callable[[], Caller]

VARIABLES = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
}
RUNS = 5
CALLS = 600
KEY = {"pk": {"S": "tenant#session:agent"}, "sk": {"S": "0001"}}
REQUEST = {"TableName": "table", "Key": KEY, "ConsistentRead": True}
ITEM = {
    **KEY,
    "model": {"S": "x" * 700},
    "created_at": {"N": "1763800000123"},
    "nonce": {"B": "AAECAwQF"},
}
BODY = json.dumps({"Item": ITEM}, separators=(",", ":")).encode()
ANSWER = (
    b"HTTP/1.1 200 OK\r\nServer: Server\r\nDate: Sun, 22 Nov 2026 00:00:00 GMT\r\n"
    b"Content-Type: application/x-amz-json-1.0\r\nConnection: keep-alive\r\n"
    b"x-amzn-RequestId: 5LCV8FB0MDFU7VB4QCMQNBD0JRVV4KQNSO5AEMVJF66Q9ASUAAJG\r\n"
    b"x-amz-crc32: %d\r\nContent-Length: %d\r\n\r\n%b" % (zlib.crc32(BODY), len(BODY), BODY)
)


class Server(asyncio.Protocol):
    """Answers each request on its connections. Requests of these clients have a body of their own."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, rest = self._received.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(rest) < length:
                return
            self._received = rest[length:]
            self._transport.write(ANSWER)


def make_own() -> Caller:
    from stint.aws.dynamodb import DynamoDBClient  # noqa: PLC0415 - the import is measured
    from stint.aws.environment import read_environment  # noqa: PLC0415

    client = DynamoDBClient(read_environment())
    return lambda: client.call("GetItem", REQUEST)


def make_botocore() -> Caller:
    from botocore.config import Config  # noqa: PLC0415 - the import is measured
    from botocore.session import get_session  # noqa: PLC0415

    config = Config(retries={"mode": "standard", "total_max_attempts": 3})
    client: Any = get_session().create_client("dynamodb", config=config)
    return lambda: asyncio.to_thread(client.get_item, **REQUEST)


CLIENTS: dict[str, Make] = {"own": make_own, "botocore": make_botocore}


FIGURES = {
    "start": ("import, client, first call", "ms"),
    "call": ("a call", "µs"),
    "three": ("three concurrent calls", "µs"),
    "memory": ("memory", "MB"),
}
"""Names and units of the figures. Times are of CPU."""


async def measure(make: Make) -> dict[str, float]:
    """Return the figures of one client in this process."""
    memory, began = resident(), time.process_time()
    call = make()
    await call()
    figures = {"start": (time.process_time() - began) * 1000, "memory": resident() - memory}
    began = time.process_time()
    for _ in range(CALLS):
        await call()
    figures["call"] = (time.process_time() - began) * 1e6 / CALLS
    began = time.process_time()
    for _ in range(CALLS // 3):
        await asyncio.gather(call(), call(), call())
    figures["three"] = (time.process_time() - began) * 1e6 / (CALLS // 3)
    return figures


def resident() -> float:
    """Return the resident memory of this process in megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def compare(module: str, clients: Mapping[str, Make]) -> dict[str, list[dict[str, float]]]:
    """Return the figures of all clients of a module, in interleaved runs."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in clients}
    command = [sys.executable, "-m", "infra.bench.dynamodb", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        try:
            url = serving.stdout.readline().strip() if serving.stdout else ""
            environment = os.environ | VARIABLES | {"AWS_ENDPOINT_URL_DYNAMODB": url}
            for _ in range(RUNS):
                for name, figures in found.items():
                    run = [sys.executable, "-m", module, name]
                    figures.append(json.loads(subprocess.check_output(run, env=environment)))
        finally:
            serving.kill()
    return found


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


def main(module: str = "infra.bench.dynamodb", clients: Mapping[str, Make] = CLIENTS) -> None:
    """Print one table for each client but the first, which it is compared with."""
    match sys.argv[1:]:
        case ["serve"]:
            asyncio.run(serve())
        case [name]:
            print(json.dumps(asyncio.run(measure(clients[name]))))
        case _:
            own, *others = compare(module, clients).items()
            for name, figures in others:
                rows = [
                    Row(label, unit, [each[key] for each in own[1]], [each[key] for each in figures])
                    for key, (label, unit) in FIGURES.items()
                ]
                print(render("DynamoDB client", own[0], name, rows))


if __name__ == "__main__":
    main()
