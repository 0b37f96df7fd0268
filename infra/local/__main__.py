"""`python -m infra.local run|invoke`: the commands that `make run` and `make invoke` call."""

import argparse
import asyncio
import os
import re
import sys
import time
from pathlib import Path
from typing import NoReturn

MOST_PORT = 65_535
DEFAULTS = {"STINT_USAGE_SUMS": "true"}
"""Settings that the shell can change. Sums cost write units, and none on this machine."""


def main() -> int:
    began = time.monotonic()
    arguments = parse_arguments()
    # Slow imports come after the arguments are checked.
    from infra.local.cloud import Plan  # noqa: PLC0415
    from infra.local.errors import LocalCloudError  # noqa: PLC0415
    from infra.local.invoke import invoke, usage  # noqa: PLC0415
    from infra.local.run import run  # noqa: PLC0415
    from infra.local.template_file import read_template  # noqa: PLC0415
    from infra.local.tool_functions import TOOLS, is_default  # noqa: PLC0415

    visibility = getattr(arguments, "visibility", None)
    shared = getattr(arguments, "concurrency", "lambda") == "shared"
    plan = Plan(
        DEFAULTS | os.environ,
        tools=arguments.tools or TOOLS,
        visibility=visibility,
        shared=shared,
        checks_models=arguments.command == "run",
        authorize=getattr(arguments, "auth", "on") == "on",
    )
    try:
        if not is_default(plan.tools):
            read_template(plan.tools)  # a broken one is told before anything starts
        if arguments.command == "run":
            asyncio.run(run(plan, arguments.port, arguments.state, fresh=arguments.fresh, began=began))
            return 0
        if not (arguments.function and arguments.event):
            raise LocalCloudError(usage())
        done = asyncio.run(invoke(plan, arguments.function, arguments.event, arguments.state))
        return 0 if done else 1
    except LocalCloudError as error:
        print(f"stint: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def path_or_none(text: str) -> Path | None:
    return Path(text) if text else None


def read_port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > MOST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: use a number from 0 (any free port) to {MOST_PORT}")
    return int(text)


class Parser(argparse.ArgumentParser):
    """Reports an error as one line that names the variable of make: `PORT` for `--port`."""

    def error(self, message: str) -> NoReturn:
        named = re.sub(r"argument --(\w+):", lambda found: f"{found[1].upper()}:", message)
        self.exit(2, f"stint: {named}\n")


def parse_arguments() -> argparse.Namespace:
    parser = Parser(prog="python -m infra.local")
    parser.add_argument("--state", type=Path, default=Path(".stint"), help="folder for the data")
    parser.add_argument("--tools", type=Path, help="SAM template with functions to use as tools")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="serve the API on 127.0.0.1")
    run.add_argument("--port", type=read_port, default=8321)
    run.add_argument("--fresh", action="store_true", help="delete the data in the state folder first")
    run.add_argument("--visibility", type=int, help="visibility timeout of the queues, in seconds, for tests")
    run.add_argument(
        "--concurrency",
        choices=("shared", "lambda"),
        default="shared",
        help="one process per streaming function, or a process per invocation and 429 as in Lambda",
    )
    run.add_argument(
        "--auth",
        choices=("off", "on"),
        default="off",
        help="on: callers need a key, which the authorizer checks; off: everyone on this machine may call",
    )
    invoke = commands.add_parser("invoke", help="invoke a function with one event")
    invoke.add_argument("function", nargs="?", help="its folder in functions/, or its logical id")
    invoke.add_argument("event", nargs="?", type=path_or_none, help="a JSON file, for example from events/")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
