"""`python -m infra.bench`: measure and print the ratios of `make bench`.

With `starts`, only those of the cold starts; with `--base COMMIT`, those of this tree to another commit.
"""

import argparse
import asyncio
import contextlib
import os
import sys
import time

from infra.bench.base import base_tree, this_tree
from infra.bench.file_search import measure_file_search
from infra.bench.history import HISTORY, measure_history, rows_after
from infra.bench.memory import measure_idle_memory, measure_memory
from infra.bench.model_server import running_model_server
from infra.bench.processes import launcher
from infra.bench.report import render
from infra.bench.responses import measure_responses
from infra.bench.sessions import measure_sides, rows_against, rows_at_once
from infra.bench.side import running_side
from infra.bench.starts import measure_starts
from infra.bench.streams import measure_streams
from infra.bench.tools import measure_tools
from infra.local.cloud import TEMPLATE, Plan, running_cloud, serving_front
from infra.local.engine import ROOT
from infra.local.errors import LocalCloudError
from infra.local.server import listen
from infra.scripts.build import runnable_build

MACHINE = f"{os.cpu_count()} processors, Python {sys.version.split()[0]}. Absolute figures are of this machine."
SETTINGS = {
    "STINT_AUTH": "none",
    "STINT_SCRIPTED_WORD_SECONDS": "0",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
}


async def bench(only_starts: bool, history: int) -> None:
    """Run all benchmarks, or those of the cold starts, against one local cloud with an empty store.

    The functions are those of the build if it is for this machine and current, else plain files.
    """
    began = time.monotonic()
    build = runnable_build(ROOT)
    plan = Plan(SETTINGS, template=build.folder / TEMPLATE.name if build else TEMPLATE, shared=True)
    async with contextlib.AsyncExitStack() as stack:
        cloud = await stack.enter_async_context(running_cloud(plan, None, silent))
        listener = stack.enter_context(contextlib.closing(listen()))
        front = await stack.enter_async_context(serving_front(cloud, listener, silent))
        launch = await stack.enter_async_context(launcher(cloud, SETTINGS))
        print(MACHINE, f"Functions from {'the build' if build else 'plain files'}.")
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
    with running_model_server() as model:
        async with running_side(this_tree(), model.url) as side:
            results = (await measure_sides([side]))[side.name]
            print(render("Sessions at once, make run", "sessions", "1 session", rows_at_once(results)), flush=True)
            turns = (await measure_history([side], history, model))[side.name]
            print(render("File search, make run", "search", "none", await measure_file_search(side.url)), flush=True)
            print(render("History, make run", "prior turns", "none", rows_after(turns, history)))
    print(f"\nMedians of interleaved runs, {time.monotonic() - began:.0f} s in total.")
    print("bare: FastAPI on uvicorn with a DynamoDB client. uvicorn: the same app, without runtime and front end.")


async def compare(commit: str, history: int) -> None:
    """Run this tree and another commit side by side, each as `make run` with an empty store."""
    began = time.monotonic()
    print(MACHINE)
    with base_tree(commit) as base, running_model_server() as model:
        async with running_side(this_tree(), model.url) as ours, running_side(base, model.url) as theirs:
            sides = (ours, theirs)
            results, turns = await measure_sides(sides), await measure_history(sides, history, model)
    rows = [row for each in (results, turns) for row in rows_against(each[ours.name], each[theirs.name])]
    print(render("make run, warm unless it says cold", ours.name, theirs.name, rows))
    print(f"\nMedians of interleaved runs, {time.monotonic() - began:.0f} s in total.")


def silent(subject: str, line: str) -> None:
    """Drop a log line of the cloud: a failure ends the run anyway."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.bench")
    parser.add_argument("only", nargs="?", choices=("starts",), help="measure only the cold starts")
    parser.add_argument("--base", metavar="COMMIT", help="compare with this commit")
    parser.add_argument("--history", metavar="TURNS", type=int, default=HISTORY, help="prior turns of the long session")
    arguments = parser.parse_args()
    history = arguments.history
    try:
        asyncio.run(compare(arguments.base, history) if arguments.base else bench(arguments.only == "starts", history))
    except LocalCloudError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
