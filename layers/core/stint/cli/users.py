"""`users list|export|erase`: the objects of end users, over the API of a stack.

Unlike the other commands, it calls the API with an API key of the scope `admin`, since exports and deletions need the
functions and their rights. A request may end before all is done: lists have pages, an erasure is repeated as long as it
deletes something, and an export is complete only if its last line says so.
"""

import argparse
import http.client
import json
import sys
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from stint.bootstrap.operator import OperatorComposition
from stint.cli.group import KEY_VARIABLE, CommandError
from stint.cli.output import show_table

if TYPE_CHECKING:
    from stint.cli.group import Subparsers

SECONDS = 900
"""Timeout of a request, the longest time that a function runs."""

CHUNK = 65_536


def add_commands(groups: "Subparsers") -> None:
    """Add the group to the parser."""
    commands = groups.add_parser("users", help="end users").add_subparsers(metavar="COMMAND", required=True)
    listing = add_user_command(commands, "list", "List the objects of an end user.")
    listing.set_defaults(run=list_objects)
    export = add_user_command(commands, "export", "Write everything of an end user as JSON lines.")
    export.set_defaults(run=export_objects)
    erasure = add_user_command(commands, "erase", "Delete everything of an end user. This cannot be undone.")
    erasure.set_defaults(run=erase_objects)


def add_user_command(commands: "Subparsers", name: str, summary: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=summary, description=summary)
    command.add_argument("user", help="the end user, as requests name them")
    command.add_argument("--url", required=True, help="URL of the stack, such as http://127.0.0.1:8321")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.epilog = f"{KEY_VARIABLE} is the API key, which needs the scope admin. It decides the tenant."
    command.set_defaults(needs_table=False)
    return command


async def list_objects(arguments: argparse.Namespace, _: OperatorComposition) -> None:
    found = list(read_objects(arguments))
    if arguments.json:
        print(json.dumps(found, indent=2))
    elif found:
        show_table(("KIND", "ID", "AGENT"), [(each["kind"], each["id"], each.get("agent_id", "")) for each in found])
    else:
        print("The end user has no objects.")


def read_objects(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the objects of an end user, page by page."""
    after = None
    while True:
        query = {"export": "false", "limit": "1000"} | ({"after": after} if after else {})
        page = read_json(arguments, "GET", query=query)
        yield from page["data"]
        after = page.get("next")
        if after is None:
            return


async def export_objects(arguments: argparse.Namespace, _: OperatorComposition) -> None:
    last = b""
    with opened(arguments, "GET", "?export=true") as answer:
        while chunk := answer.read(CHUNK):
            # Enough to contain the last line, without keeping the export.
            last = (last + chunk)[-CHUNK:]
            sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
    if b'{"kind": "end"' not in last.rstrip(b"\n").rpartition(b"\n")[2]:
        raise CommandError("The export is not complete: the connection ended. Run the command again.")


async def erase_objects(arguments: argparse.Namespace, _: OperatorComposition) -> None:
    """Repeat the request until nothing is left, or no progress is made."""
    deleted: Counter[str] = Counter()
    while True:
        receipt = read_json(arguments, "DELETE")
        deleted.update(receipt["deleted"])
        # Nothing was deleted, so what is left needs time: it is still being written, or the worker deletes it.
        if receipt["complete"] or not receipt["deleted"]:
            break
    receipt["deleted"] = dict(deleted)
    if arguments.json:
        print(json.dumps(receipt, indent=2))
    else:
        print(", ".join(f"{count} {kind}" for kind, count in sorted(deleted.items())) or "Nothing", "deleted.")
    if not receipt["complete"]:
        raise CommandError(f"{receipt['remaining']} objects are still being written or deleted. Repeat in a minute.")


def read_json(arguments: argparse.Namespace, method: str, *, query: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON of a response. Raises CommandError."""
    with opened(arguments, method, "?" + urlencode(query) if query else "") as answer:
        document: dict[str, Any] = json.load(answer)
        return document


@contextmanager
def opened(arguments: argparse.Namespace, method: str, suffix: str) -> Iterator[IO[bytes]]:
    """Send a request about the end user, and yield its response. Raises CommandError."""
    url = f"{arguments.url.rstrip('/')}/v1/admin/users/{quote(arguments.user, safe='')}{suffix}"
    if not url.startswith(("http://", "https://")):
        raise CommandError(f"{arguments.url!r} is not a URL. Use one such as https://api.example.com.")
    headers = {"Authorization": f"Bearer {arguments.api_key or 'none'}"}
    request = urllib.request.Request(url, method=method, headers=headers)  # noqa: S310 - checked above
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            yield answer
    except urllib.error.HTTPError as error:
        raise CommandError(
            f"{error.code}: {message_of(error)} Check {KEY_VARIABLE}, and that its key has the scope admin."
        ) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise CommandError(f"{arguments.url} cannot be reached: {error}") from error


def message_of(error: urllib.error.HTTPError) -> str:
    """Return the message of an error's body."""
    try:
        return str(json.load(error)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return str(error.reason)
