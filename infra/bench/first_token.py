"""`python -m infra.bench.first_token --base COMMIT`: CPU time of `turns` until the first token, of two trees.

Each tree runs as `make run`, with a model server that waits after its first word. So the function is idle when its CPU
time is read, and what follows the first token is not in it. A cold process is new: its figure has its start, too.
"""

import argparse
import asyncio
import json
import sys
from http.client import HTTPConnection
from statistics import median
from urllib.parse import urlsplit

from infra.bench.base import base_tree, this_tree
from infra.bench.client import TOKEN, Api, turn_body
from infra.bench.cost import cpu_seconds_at
from infra.bench.model_server import running_model_server
from infra.bench.processes import MODEL
from infra.bench.side import Side, running_side
from infra.local.errors import LocalCloudError

PAUSE = 0.1
"""Seconds between the first token and the end of an answer."""

COLD, WARM = 7, 40
BASE_MB = 256
SIZES = (128, 160, 176, 192, 208, 256)


def cpu_until_token(side: Side, session: str, *, cold: bool) -> float:
    """Run a turn, and return the milliseconds of CPU time until its first token."""
    if cold:
        side.kill("turns")
    before = 0.0 if cold else side.cpu_seconds("turns")
    connection = HTTPConnection(urlsplit(side.url).netloc, timeout=60)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", f"{session}/turn", json.dumps(turn_body("say: done")), headers)
    response = connection.getresponse()
    received = b""
    while not TOKEN.search(received):
        piece = response.read1()
        if not piece:
            raise LocalCloudError(f"no token: {received[-500:]!r}")
        received += piece
    spent = side.cpu_seconds("turns") - before
    response.read()
    connection.close()
    return spent * 1000


def measure(sides: tuple[Side, ...], *, cold: bool) -> list[float]:
    """Return the medians of the sides, whose turns alternate."""
    sessions = []
    for side in sides:
        api = Api(side.url)
        sessions.append(api.create_session(api.create_agent(MODEL)))
        api.close()
    found: list[list[float]] = [[] for _ in sides]
    for number in range((COLD if cold else WARM) + 1):
        for side, session, each in zip(sides, sessions, found, strict=True):
            spent = cpu_until_token(side, session, cold=cold)
            each += [spent] if number else []  # the first turn reads what the process then remembers
    return [median(each) for each in found]


def show(name: str, ours: float, theirs: float) -> None:
    """Print the CPU times of both trees, and the time that they take in functions of several sizes."""
    limit = cpu_seconds_at(theirs, BASE_MB)
    print(f"{name}: {ours:.1f} ms of CPU time, base {theirs:.1f} ms, ratio {ours / theirs:.2f}")
    print(f"  base at {BASE_MB} MB {limit * 1000:8.0f} ms")
    for size in SIZES:
        taken = cpu_seconds_at(ours, size)
        print(f"  this at {size} MB {taken * 1000:8.0f} ms{'' if taken <= limit else '  later than the base'}")


async def main(commit: str) -> None:
    with base_tree(commit) as base, running_model_server(PAUSE) as model:
        async with running_side(this_tree(), model.url) as ours, running_side(base, model.url) as theirs:
            sides = (ours, theirs)
            warm = await asyncio.to_thread(measure, sides, cold=False)
            cold = await asyncio.to_thread(measure, sides, cold=True)
    show("first token of a warm process", *warm)
    show("first token of a new process, with its start", *cold)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m infra.bench.first_token")
    parser.add_argument("--base", metavar="COMMIT", required=True, help="compare with this commit")
    try:
        asyncio.run(main(parser.parse_args().base))
    except LocalCloudError as error:
        sys.exit(f"first_token: {error}")
