"""A function that continues from a snapshot uses nothing of the time before it."""

import json
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.runtime.harness import Start, proxy_event

ROOT = Path(__file__).parents[2]
SESSION = "/v1/agents/00000000-0000-7000-8000-000000000000/session/00000000-0000-7000-8000-000000000000"

# The function of turns, which serves a request before the snapshot, as code at its start might.
WARMED = """
import random
import turns

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        random.seed(1)
        await request_session()
    if scope["type"] == "http":
        print("repeated" if random.random() == random.Random(1).random() else "other", flush=True)
    await turns.app(scope, receive, send)

async def request_session():
    path = "SESSION"
    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "root_path": "", "headers": [],
             "query_string": b"", "scheme": "https", "http_version": "1.1", "server": ("localhost", 443)}

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        print(message.get("status", ""), flush=True)

    await turns.app(scope, receive, send)
""".replace("SESSION", SESSION)


@dataclass
class Calls:
    """The credentials that each connection to DynamoDB used, and how often credentials were loaded."""

    of_connections: list[set[str]] = field(default_factory=list)
    loads: int = 0


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def address(calls: Calls) -> Iterator[str]:
    """Serve an empty DynamoDB, and the endpoint of credentials: each load returns another key."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.used: set[str] = set()

        def do_GET(self) -> None:
            calls.loads += 1
            expiration = "2100-01-01T00:00:00Z"
            secret = {"SecretAccessKey": "secret", "Token": "token", "Expiration": expiration}
            self.answer({"AccessKeyId": f"AKID{calls.loads}", **secret})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if not self.used:
                calls.of_connections.append(self.used)
            self.used.update(re.findall(r"Credential=(\w+)/", self.headers["Authorization"]))
            self.answer({})

        def answer(self, body: object) -> None:
            content = json.dumps(body).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Write no log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


async def test_a_restored_function_has_new_connections_credentials_and_random_numbers(
    service: Start, tmp_path: Path, address: str, calls: Calls
) -> None:
    (tmp_path / "app.py").write_text(WARMED)
    (tmp_path / "turns.py").write_text((ROOT / "functions" / "turns" / "app.py").read_text())
    environment = {
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{address}/credentials",
        "AWS_ENDPOINT_URL": address,
        "AWS_REGION": "eu-west-1",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "STINT_AUTH": "none",
        # The client of Bedrock, which the start makes for the usual default model, loads credentials of its own.
        "STINT_DEFAULT_MODEL": "scripted/demo",
        "STINT_SCRIPTED_MODELS": "true",
        "STINT_TABLE": "table",
        "STINT_BUCKET": "bucket",
        "PYTHONPATH": os.pathsep.join((str(ROOT / "layers" / "core"), str(ROOT))),
    }
    function = await service("app.app", code=tmp_path, environment=environment)

    payload, invocation = await function.call(proxy_event(path=SESSION))

    assert invocation.error is None
    assert b'"statusCode":404' in payload.replace(b" ", b"")
    before = [keys for keys in calls.of_connections if "AKID1" in keys]
    after = [keys for keys in calls.of_connections if "AKID1" not in keys]
    assert before == [{"AKID1"}] * len(before) != []
    assert after == [{"AKID2"}] * len(after) != []
    assert calls.loads == 2
    plain = [line for line in function.lines if not line.startswith("{")]
    assert [line for line in plain if line] == ["404", "other"]
