"""Options and checks of all groups of commands."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from stint.domain.principals import is_tenant

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


KEY_VARIABLE = "STINT_API_KEY"
"""The environment variable with the API key for commands that call the API."""

NO_DATA_TABLE = (
    "No table of data is named. Use --stack with the name of a deployed stack, --data-table with its output TableName, "
    "or --state with the folder of a running `make run`, such as .stint."
)


class CommandError(Exception):
    """A command cannot run. The message says why, and what to do."""


def add_command(commands: "Subparsers", name: str, summary: str) -> argparse.ArgumentParser:
    """Add a command with the options that all commands have."""
    command = commands.add_parser(name, help=summary, description=summary)
    stack = command.add_mutually_exclusive_group()
    stack.add_argument("--stack", help="name of a deployed stack, whose outputs name its tables")
    stack.add_argument("--table", help="table of keys of a deployed stack (default: STINT_KEYS_TABLE)")
    stack.add_argument("--state", type=Path, help="state folder of a running `make run`, such as .stint")
    command.add_argument("--json", action="store_true", help="print JSON")
    return command


def check_tenant(name: str) -> str:
    """Return a tenant's name. Raises CommandError."""
    if not is_tenant(name):
        raise CommandError(
            f"{name!r} is not a tenant's name. Use up to 32 lowercase letters, digits and hyphens, such as team-a."
        )
    return name
