"""`python -m infra.bench.model_calls`: CPU time of a call to a chat completions server.

A process on loopback answers, so the figures are of the adapter and the loop alone. They come as medians of several
calls: what the messages of 1000 earlier turns cost at a first call and at a later one of the same session, and what
each chunk of an answer costs.
"""

import asyncio
import json
import subprocess
import sys
import time
from statistics import median

from stint.domain.inference import AssistantAnswer, InferenceRequest, ModelMessage, UserInput
from stint.loop.model_call import Inference
from stint.models.fetched_images import FetchedImages
from stint.models.openai_compatible import OpenAICompatible
from stint.models.port import ChatModel
from stint.models.tool_names import SanitizedToolNames

TURNS = 1000
CHUNKS = 1000
CALLS = 9
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def write_chunk(delta: dict[str, str], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    fields = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1763800000, "model": "m"}
    event = b"data: %b\n\n" % json.dumps({**fields, "choices": [choice]}).encode()
    return b"%x\r\n%b\r\n" % (len(event), event)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of a connection: a request with one message by 1000 chunks, any other by one."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = await reader.readexactly(length)
            writer.write(HEAD)
            for _ in range(CHUNKS if b"Stream" in body else 1):
                writer.write(write_chunk({"content": "word "}))
                await writer.drain()
                await asyncio.sleep(0.0005)  # so that each chunk is read alone
            writer.write(write_chunk({}, "stop") + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def serve() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 24)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


async def call(model: ChatModel, messages: tuple[ModelMessage, ...]) -> float:
    """Return the milliseconds of CPU time of a call."""
    began = time.process_time()
    inference = Inference(model, InferenceRequest("m", messages))
    async for _ in inference.read(asyncio.get_running_loop().time() + 60):
        pass
    await inference.close()
    return (time.process_time() - began) * 1000


def make_turns() -> tuple[ModelMessage, ...]:
    turns = (
        (UserInput(f"Question {n}? {'q' * 60}"), AssistantAnswer(f"Answer {n}. {'a' * 100}")) for n in range(TURNS)
    )
    return tuple(message for turn in turns for message in turn)


async def unexpected(url: str) -> bytes:
    raise ValueError(url)


async def measure(url: str) -> None:
    server = OpenAICompatible(url)
    model = SanitizedToolNames(FetchedImages(server, unexpected))  # type: ignore[arg-type] # fetches nothing here
    remembered = make_turns()
    alone, first, later, streamed = [], [], [], []
    for number in range(CALLS):
        alone.append(await call(model, (UserInput(f"Hello {number}"),)))
        first.append(await call(model, (*make_turns(), UserInput(f"Hello {number}"))))
        later.append(await call(model, (*remembered, UserInput(f"Hello {number}"))))
        streamed.append(await call(model, (UserInput("Stream"),)))
    await server.aclose()
    base = median(alone)
    print(f"a call with one message           {base:7.2f} ms")
    print(f"{2 * TURNS} more messages, first call    {median(first) - base:7.2f} ms")
    print(f"{2 * TURNS} more messages, later call    {median(later[1:]) - base:7.2f} ms")
    print(f"a chunk of the answer             {(median(streamed) - base) * 1000 / CHUNKS:7.1f} µs")


def main() -> None:
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
        return
    command = [sys.executable, "-m", "infra.bench.model_calls", "serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        try:
            asyncio.run(measure(serving.stdout.readline().strip() if serving.stdout else ""))
        finally:
            serving.kill()


if __name__ == "__main__":
    main()
