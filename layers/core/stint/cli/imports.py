"""`import llama-stack FILE`: the agents, sessions and turns that a Llama Stack server stored."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from stint.bootstrap.operator import OperatorComposition
from stint.cli.group import CommandError, add_command, check_tenant
from stint.cli.kv_file import opened
from stint.cli.llama_stack.report import ImportReport
from stint.cli.llama_stack.store_import import LlamaStackImport
from stint.cli.output import show_json, show_table
from stint.domain.ids import TENANT

if TYPE_CHECKING:
    from stint.cli.group import Subparsers

HEAD = ("", "IN THE FILE", "IMPORTED", "ALREADY THERE")
NO_STORE = (
    "No table and bucket of data are named. Use --data-table and --bucket with the stack's outputs TableName and "
    "BucketName, or --state with the folder of a running `make run`."
)


def add_commands(groups: "Subparsers") -> None:
    """Add the group to the parser."""
    commands = groups.add_parser("import", help="data of other servers").add_subparsers(
        metavar="COMMAND", required=True
    )
    command = add_command(commands, "llama-stack", "Import the agents, sessions and turns of a Llama Stack server.")
    command.add_argument("file", type=Path, help="sqlite file of its agents (persistence_store)")
    command.add_argument("--data-table", help="table of data of a deployed stack (default: STINT_TABLE)")
    command.add_argument("--bucket", help="bucket of a deployed stack (default: STINT_BUCKET)")
    command.add_argument("--tenant", default=TENANT, help="tenant (default: %(default)s)")
    command.add_argument("--dry-run", action="store_true", help="read and check the file, and write nothing")
    command.set_defaults(run=import_file, needs_keys_table=False)


async def import_file(arguments: argparse.Namespace, composition: OperatorComposition) -> None:
    """Import a file, and print what was done. Raises CommandError after that if rows were not imported."""
    settings = composition.settings
    if not settings.table or not settings.bucket:
        raise CommandError(NO_STORE)
    tenant = check_tenant(arguments.tenant)
    with opened(arguments.file) as source:
        run = LlamaStackImport(
            tenant, composition.store, source, settings.session_expiry_days, dry_run=arguments.dry_run
        )
        report = await run.run()
    if arguments.json:
        show_json(report)
    else:
        show(report)
    # After the report, as an exit code: a script must notice what is missing.
    if report.bad:
        raise CommandError(f"{len(report.bad)} rows were not imported. The others were.")


def show(report: ImportReport) -> None:
    """Print a report."""
    kinds = {"agents": report.agents, "sessions": report.sessions, "turns": report.turns, "steps": report.steps}
    rows = [(kind, str(counts.found), str(counts.imported), str(counts.present)) for kind, counts in kinds.items()]
    show_table(HEAD, rows)
    if report.ignored:
        print(f"{report.ignored} rows have no agents, sessions or turns.")
    for change in report.changed:
        print(f"{change.key}: {change.note}")
    for session_id in report.without_memory:
        print(f"Session {session_id} has memory banks, which are in other files. They were not imported.")
    for row in report.bad:
        print(f"{row.key}: {row.reason}")
    if report.dry_run:
        print("Nothing was written, because of --dry-run.")
