"""`python -m infra.bench`: measure and print the ratios of `make bench`; with `starts`, those of the cold starts."""

import asyncio
import contextlib
import os
import sys
import time

from infra.bench.memory import measure_idle_memory, measure_memory
from infra.bench.processes import launcher
from infra.bench.report import render
from infra.bench.responses import measure_responses
from infra.bench.starts import measure_starts
from infra.bench.streams import measure_streams
from infra.bench.tools import measure_tools
from infra.local.cloud import Plan, running_cloud, serving_front
from infra.local.errors import LocalCloudError
from infra.local.server import listen

SETTINGS = {
    "STINT_SCRIPTED_WORD_SECONDS": "0",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
}


async def bench(only_starts: bool) -> None:
    """Run all benchmarks, or those of the cold starts, against one local cloud with an empty store."""
    began = time.monotonic()
    async with contextlib.AsyncExitStack() as stack:
        cloud = await stack.enter_async_context(running_cloud(Plan(SETTINGS), None, silent))
        listener = stack.enter_context(contextlib.closing(listen()))
        front = await stack.enter_async_context(serving_front(cloud, listener, silent))
        launch = await stack.enter_async_context(launcher(cloud, SETTINGS))
        print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}. Absolute figures are of this machine.")
        print(render("Cold start", "function", "bare", await measure_starts(launch)), flush=True)
        if sys.platform == "linux":
            print(render("Idle memory", "function", "bare", await measure_idle_memory(launch)), flush=True)
        if only_starts:
            return
        async with launch.uvicorn("direct") as server:
            rows = await measure_streams(front, server.url)
        print(render("Streaming, warm", "front", "uvicorn", rows), flush=True)
        print(render("Responses, warm", "response", "turn", await measure_responses(front)), flush=True)
        print(render("Tools, warm", "at once", "sum", await measure_tools(front)), flush=True)
        if sys.platform == "linux":
            print(render("Peak memory, turns", "function", "uvicorn", await measure_memory(launch, front)))
        print(f"\nMedians of interleaved runs, {time.monotonic() - began:.0f} s in total.")
        print("bare: FastAPI on uvicorn with a DynamoDB client. uvicorn: the same app, without runtime and front end.")


def silent(subject: str, line: str) -> None:
    """Drop a log line of the cloud: a failure ends the run anyway."""


def main() -> int:
    try:
        asyncio.run(bench(sys.argv[1:] == ["starts"]))
    except LocalCloudError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
