"""A FastAPI app that is streamed by the runtime and buffered by Mangum."""

import asyncio
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from mangum import Mangum

app = FastAPI()
handler = Mangum(app, lifespan="off")


@app.get("/v1/words")
async def words(request: Request) -> StreamingResponse:
    port = int(request.headers["x-gate"])

    async def produce() -> AsyncIterator[bytes]:
        yield b"one "
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"between\n")
        await reader.read(1)
        writer.close()
        yield b"two"

    return StreamingResponse(produce(), media_type="text/plain")


@app.get("/v1/where/{name:path}", name="where")
async def where(name: str, request: Request) -> dict[str, str]:
    return {"name": name, "url": str(request.url_for("where", name=name)), "tag": request.query_params["tag"]}
