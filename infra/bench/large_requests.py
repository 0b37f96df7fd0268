"""`python -m infra.bench.large_requests`: peak memory of the streaming functions after the largest requests.

Each function is a process that runs as in Lambda, with the memory of the template. It gets a small request and then
each of 6 MB, one after the other, so what one leaves behind counts for the next. A peak is VmHWM of proc_pid_status(5),
which is reset before each request, or the memory of the process and of those that it starts together, if that is more.
"""

import asyncio
import base64
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from infra.bench.client import Api
from infra.bench.memory import status_field
from infra.bench.processes import SETTINGS, Launcher, RunningFunction, launcher
from infra.local.cloud import Plan, running_cloud, serving_front
from infra.local.server import listen

BODY = 5_990_000
"""Bytes of a large body. The event of API Gateway around it has a few hundred more."""

DOCUMENT = BODY * 3 // 4
SAMPLED_SECONDS = 0.005
LONG_TURNS = 1_000


@dataclass(frozen=True)
class Sent:
    """A request, with a name for the table."""

    name: str
    path: str
    body: object = None
    method: str = "POST"


def texts() -> Iterator[tuple[str, str]]:
    """Yield the texts that take the most memory for their size in JSON."""
    yield "text", "say: ok\n" + "x" * BODY
    yield "text with one wide letter", "say: ok\n\U0001f642" + "x" * BODY
    yield "text of escapes", "say: ok\n" + "\u00e9" * (BODY // 6)
    yield "text of wide letters", "say: ok\n" + "\U0001f642" * (BODY // 12)


def message(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


def documents() -> Iterator[tuple[str, dict[str, object]]]:
    """Yield documents in base64, each of which takes the whole request."""
    for name, kind, piece in (
        ("text", "text/plain", b"word "),
        ("HTML", "text/html", b"<p>word "),
        ("unfinished HTML", "text/html", b"<a "),
        ("HTML with a wide letter", "text/html", "<p>\U0001f642".encode()),
    ):
        data = base64.b64encode(piece * (DOCUMENT // len(piece))).decode()
        yield name, {"content": {"uri": f"data:{kind};base64,{data}"}, "mime_type": kind}


def image() -> str:
    """Return an image in base64 whose beginning is that of a PNG."""
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(DOCUMENT - 8)).decode()


def of_turns(session: str, long: str, large: str) -> Iterator[Sent]:
    path = f"{session}/turn"
    for name, text in texts():
        yield Sent(name, path, {"messages": [message(text)], "stream": True})
    for name, document in documents():
        yield Sent(f"document: {name}", path, {"messages": [message("say: ok")], "documents": [document]})
    picture = [{"type": "image", "image": {"data": image()}}, {"type": "text", "text": "say: ok"}]
    yield Sent("image", path, {"messages": [message(picture)]})
    yield Sent("199,000 values", path, {"messages": [{}] * 199_000})
    yield Sent("199,000 fields", path, {f"f{number}": 0 for number in range(199_000)})
    yield Sent("10,000 messages", path, {"messages": [message("say: ok")] * 10_000})
    yield Sent(f"history of {LONG_TURNS:,} turns", f"{long}/turn", {"messages": [message("say: ok")]})
    yield Sent(f"session of {LONG_TURNS:,} turns", long, method="GET")
    yield Sent("history of 4 MB", f"{large}/turn", {"messages": [message("say: ok")]})
    yield Sent("session of 12 MB", large, method="GET")


def of_responses() -> Iterator[Sent]:
    path, model = "/v1/responses", {"model": "scripted/demo"}
    for name, text in texts():
        yield Sent(name, path, {**model, "input": text, "stream": True})
        yield Sent(f"chat completion: {name}", "/v1/chat/completions", {**model, "messages": [message(text)]})
    for name, document in documents():
        part = {"type": "input_file", "file_data": document["content"]["uri"], "filename": "a.html"}  # type: ignore[index]
        content = [part, {"type": "input_text", "text": "say: ok"}]
        yield Sent(f"document: {name}", path, {**model, "input": [message(content)]})
    part = {"type": "input_image", "image_url": f"data:image/png;base64,{image()}"}
    yield Sent("image", path, {**model, "input": [message([part, {"type": "input_text", "text": "say: ok"}])]})
    yield Sent("199,000 values", path, {**model, "input": [{}] * 199_000})
    yield Sent("199,000 fields", path, {**model, **{f"f{number}": 0 for number in range(199_000)}})
    yield Sent("10,000 items", path, {**model, "input": [message("say: ok")] * 10_000})


def of_knowledge() -> Iterator[Sent]:
    document = {"document_id": "large", "mime_type": "text/plain"}
    for name, text in texts():
        body = {"documents": [{**document, "content": text}], "vector_db_id": "none", "chunk_size_in_tokens": 512}
        yield Sent(f"documents: {name}", "/v1/tool-runtime/rag-tool/insert", body)
        chunks = [{"content": text, "metadata": {"document_id": "large"}}]
        yield Sent(f"chunks: {name}", "/v1/vector-io/insert", {"vector_db_id": "none", "chunks": chunks})
    words = ["word"] * 199_000
    yield Sent("199,000 texts", "/v1/embeddings", {"model": "hashed/words-384", "input": words})


def of_october() -> Iterator[Sent]:
    for name, text in texts():
        yield Sent(name, "/inference/chat_completion", {"model": "scripted/demo", "messages": [message(text)]})
    yield Sent("199,000 values", "/inference/chat_completion", {"model": "scripted/demo", "messages": [{}] * 199_000})


async def measure(launch: Launcher, name: str, small: Sent, requests: Iterator[Sent]) -> float:
    """Print the peaks of a function, and return the largest one."""
    async with launch.function(name) as function:
        print(f"\n{name}")
        show("before the first event", megabytes(function.pid, "VmRSS"))
        most = await peak_of(launch, function, small)
        show("small request", most)
        show("after it", megabytes(function.pid, "VmRSS"))
        for request in requests:
            found = await peak_of(launch, function, request)
            show(request.name, found)
            most = max(most, found)
        show("after all of them", megabytes(function.pid, "VmRSS"))
        return most


async def peak_of(launch: Launcher, function: RunningFunction, request: Sent) -> float:
    """Run a request, and return the peak of the function and of the processes that it starts, in MB."""
    event = launch.event(request.method, request.path, request.body)
    reset_peak(function.pid)
    answering = asyncio.create_task(function.answer(event))
    together = 0.0
    while not (await asyncio.wait({answering}, timeout=SAMPLED_SECONDS))[0]:
        together = max(together, memory_with_children(function.pid))
    await answering
    return max(megabytes(function.pid, "VmHWM"), together)


def reset_peak(pid: int) -> None:
    """Set the peak of a process to its current memory, proc_pid_clear_refs(5)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def memory_with_children(pid: int) -> float:
    """Return the memory of a process and of those that it has started, in MB."""
    found = megabytes(pid, "VmRSS")
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError, IndexError):  # one has ended meanwhile
            found += sum(megabytes(int(child), "VmRSS") for child in task.read_text().split())
    return found


def megabytes(pid: int, name: str) -> float:
    """Return a figure of a process in MB as Lambda counts them, of 1,024 times 1,024 bytes."""
    return status_field(pid, name) * 1000 / 1024


def show(name: str, size: float) -> None:
    print(f"  {name:45}{size:8.1f} MB", flush=True)


def make_sessions(front: str) -> tuple[str, str, str]:
    """Create sessions: an empty one, one of many turns, and one of few large turns. Return their paths."""
    api = Api(front)
    agent = api.create_agent()
    empty, long, large = (api.create_session(agent) for _ in range(3))
    for _ in range(LONG_TURNS):
        api.stream_turn(long, "say: " + "A sentence that a model might say to a user. " * 3)
    for _ in range(6):
        api.stream_turn(large, "say: done\n" + "x" * 2_000_000)
    api.close()
    return empty, long, large


async def main() -> None:
    async with contextlib.AsyncExitStack() as stack:
        cloud = await stack.enter_async_context(running_cloud(Plan(SETTINGS, shared=True), None, lambda *_: None))
        listener = stack.enter_context(contextlib.closing(listen()))
        front = await stack.enter_async_context(serving_front(cloud, listener, lambda *_: None))
        launch = await stack.enter_async_context(launcher(cloud, SETTINGS))
        empty, long, large = await asyncio.to_thread(make_sessions, front)
        turn = Sent("small", f"{empty}/turn", {"messages": [message("say: ok")], "stream": True})
        response = Sent("small", "/v1/responses", {"model": "scripted/demo", "input": "say: ok", "stream": True})
        chat = {"model": "scripted/demo", "messages": [message("say: ok")]}
        peaks = [
            await measure(launch, "turns", turn, of_turns(empty, long, large)),
            await measure(launch, "responses", response, of_responses()),
            await measure(launch, "knowledge", Sent("small", "/v1/vector_stores", method="GET"), of_knowledge()),
            await measure(launch, "october", Sent("small", "/inference/chat_completion", chat), of_october()),
        ]
        memory = launch.memory("turns")
        print(f"\nThe largest peak is {max(peaks):.0f} MB, {max(peaks) / memory:.0%} of the {memory} MB of `turns`.")


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("This reads /proc, which only Linux has.")
    asyncio.run(main())
