"""`python -m infra.bench`: measure and print the ratios of `make bench`.

With `starts`, only those of the cold starts; with `turn`, only the CPU time of a turn; with `--base COMMIT`, those of
this tree to another commit.
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
from infra.bench.model_server import ModelServer, running_model_server
from infra.bench.processes import SETTINGS, Launcher, launcher, with_model
from infra.bench.report import render
from infra.bench.responses import measure_responses
from infra.bench.sessions import measure_sides, rows_against, rows_at_once
from infra.bench.side import running_side
from infra.bench.starts import measure_first_tokens, measure_starts, rows_of, rows_of_floor
from infra.bench.streams import measure_streams
from infra.bench.tools import measure_tools
from infra.bench.turns import measure_turns
from infra.local.cloud import TEMPLATE, Plan, running_cloud, serving_front
from infra.local.engine import ROOT
from infra.local.errors import LocalCloudError
from infra.local.server import listen
from infra.scripts.build import runnable_build

MACHINE = f"{os.cpu_count()} processors, Python {sys.version.split()[0]}. Absolute figures are of this machine."


async def bench(only: str, history: int) -> None:
    """Run all benchmarks, or those of the cold starts or of a turn, against one local cloud with an empty store.

    The functions are those of the build if it is for this machine and current, else plain files.
    """
    began = time.monotonic()
    build = runnable_build(ROOT)
    print(MACHINE, f"Functions from {'the build' if build else 'plain files'}.")
    plan = Plan(SETTINGS, template=build.folder / TEMPLATE.name if build else TEMPLATE, shared=True)
    with running_model_server() as model:
        await bench_functions(only, model, plan)
        if not only:
            await bench_sessions(history, model)
    print(f"\nMedians of interleaved runs, {time.monotonic() - began:.0f} s in total.")
    print("bare: FastAPI on uvicorn with a DynamoDB client. uvicorn: the same app, without runtime and front end.")
    print("floor: a function that runs one kind of turn, written by hand.")


async def bench_functions(only: str, model: ModelServer, plan: Plan) -> None:
    """Measure functions in processes of their own, and those of the shared cloud."""
    async with contextlib.AsyncExitStack() as stack:
        cloud = await stack.enter_async_context(running_cloud(plan, None, silent))
        listener = stack.enter_context(contextlib.closing(listen()))
        front = await stack.enter_async_context(serving_front(cloud, listener, silent))
        launch = await stack.enter_async_context(launcher(cloud, with_model(model.url)))
        if only != "turn":
            await bench_starts(launch, front)
        if only != "starts" and sys.platform == "linux":
            print(render("CPU time of a turn", "function", "floor", await measure_turns(launch, front)), flush=True)
        if not only:
            await bench_streams(launch, front)


async def bench_starts(launch: Launcher, front: str) -> None:
    """Measure starts, the first tokens after them, and the memory."""
    times = await measure_starts(launch)
    rows = rows_of(times) + await measure_first_tokens(launch, front)
    print(render("Cold start", "function", "bare", rows), flush=True)
    if sys.platform == "linux":
        print(render("CPU time to first /next", "function", "floor", rows_of_floor(times)), flush=True)
        print(render("Idle memory", "function", "bare", await measure_idle_memory(launch)), flush=True)


async def bench_streams(launch: Launcher, front: str) -> None:
    """Measure streams, tools and memory."""
    async with launch.uvicorn("direct") as server:
        rows = await measure_streams(front, server.url)
    print(render("Streaming, warm", "front", "uvicorn", rows), flush=True)
    print(render("Responses, warm", "response", "turn", await measure_responses(front)), flush=True)
    print(render("Tools, warm", "at once", "sum", await measure_tools(front)), flush=True)
    if sys.platform == "linux":
        print(render("Peak memory, turns", "function", "uvicorn", await measure_memory(launch, front)), flush=True)


async def bench_sessions(history: int, model: ModelServer) -> None:
    """Measure many sessions, file search and a long history, with `make run`."""
    async with running_side(this_tree(), model.url) as side:
        results = (await measure_sides([side]))[side.name]
        print(render("Sessions at once, make run", "sessions", "1 session", rows_at_once(results)), flush=True)
        turns = (await measure_history([side], history, model))[side.name]
        print(render("File search, make run", "search", "none", await measure_file_search(side.url)), flush=True)
        print(render("History, make run", "prior turns", "none", rows_after(turns, history)))


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
    parser.add_argument("only", nargs="?", choices=("starts", "turn"), help="measure only these")
    parser.add_argument("--base", metavar="COMMIT", help="compare with this commit")
    parser.add_argument("--history", metavar="TURNS", type=int, default=HISTORY, help="prior turns of the long session")
    arguments = parser.parse_args()
    history = arguments.history
    try:
        asyncio.run(compare(arguments.base, history) if arguments.base else bench(arguments.only or "", history))
    except LocalCloudError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
