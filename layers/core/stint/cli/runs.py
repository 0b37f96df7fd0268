"""`runs list`: running turns and responses."""

import argparse
from typing import TYPE_CHECKING

from stint.bootstrap.operator import OperatorComposition
from stint.cli.output import format_time, show_json, show_table
from stint.cli.stop import add_data_command, admit
from stint.domain.paging import MAX_ENTRIES
from stint.domain.running_runs import RunningRun
from stint.services.access.run_administration import RunFilter

if TYPE_CHECKING:
    from stint.cli.group import Subparsers

HEAD = ("KIND", "ID", "MODEL", "KEY", "SESSION OR CONVERSATION", "BEGAN")


def add_commands(groups: "Subparsers") -> None:
    """Add the group to the parser."""
    commands = groups.add_parser("runs", help="running work").add_subparsers(metavar="COMMAND", required=True)
    listing = add_data_command(commands, "list", "List turns and responses that have run for 10 seconds.")
    listing.add_argument("--agent", help="id of their agent")
    listing.add_argument("--session", help="id of their session")
    listing.add_argument("--key", help="id of their API key")
    listing.set_defaults(run=list_runs)


async def list_runs(arguments: argparse.Namespace, composition: OperatorComposition) -> None:
    """Print running runs, the newest first: at most 1,000."""
    wanted = RunFilter(arguments.agent, arguments.session, arguments.key)
    tenant = admit(arguments, composition)
    page = await composition.running_runs.list_page(tenant, None, MAX_ENTRIES, wanted.accepts)
    if arguments.json:
        show_json(page.data)
    elif page.data:
        show_table(HEAD, [row_of(run) for run in page.data])
        if page.has_more:
            print(f"There are more than {MAX_ENTRIES}.")
    else:
        print(f"Nothing of the tenant {tenant} has run for 10 seconds.")


def row_of(run: RunningRun) -> tuple[str, ...]:
    place = run.session_id or run.conversation_id or ""
    return run.kind, run.id, run.model, run.key_id or "", place, format_time(run.began_at)
