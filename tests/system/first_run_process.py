"""`python -m tests.system.first_run_process PATH BODY`: start the function of the current folder, and run one request.

It prints, as JSON, the ports to which the start connected, those to which the first request did, and the modules that
this request loaded. The function is started as by its runtime, on asyncio's loop, whose connections are audited.
"""

import asyncio
import json
import sys

from starlette.types import Message

from stint_runtime.__main__ import load, start

connected: list[int] = []


def note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        connected.append(arguments[1][1])


async def run(path: str, body: str) -> None:
    sys.addaudithook(note)
    sys.path.insert(0, "")
    app = load("app.app")
    await start(app)
    at_start, modules = list(connected), set(sys.modules)
    connected.clear()
    messages: list[Message] = [{"type": "http.request", "body": body.encode(), "more_body": False}]
    written: list[bytes] = []

    async def receive() -> Message:
        return messages.pop() if messages else await asyncio.get_running_loop().create_future()

    async def send(message: Message) -> None:
        written.append(message.get("body", b""))

    headers = [(b"content-type", b"application/json"), (b"user-agent", b"tests")]
    scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "method": "POST", "path": path}
    await app({**scope, "root_path": "", "query_string": b"", "headers": headers}, receive, send)
    loaded = sorted(set(sys.modules) - modules)
    answer = b"".join(written).decode()
    print(json.dumps({"start": at_start, "request": connected, "modules": loaded, "answer": answer}))


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], sys.argv[2]))
