"""`import llama-stack FILE`: the agents, sessions and turns that a Llama Stack server stored.

The server stores keys and values in a sqlite file, which is opened for reading only.
"""

import argparse
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stint.bootstrap.operator import OperatorComposition
from stint.cli.group import CommandError, add_command, check_tenant
from stint.cli.llama_stack.report import ImportReport
from stint.cli.llama_stack.store_import import LlamaStackImport
from stint.cli.output import show_json, show_table
from stint.domain.ids import TENANT

if TYPE_CHECKING:
    from stint.cli.group import Subparsers

HEAD = ("", "IN THE FILE", "IMPORTED", "ALREADY THERE")
NO_STORE = (
    "No table and bucket of data are named. Use --stack with the name of a deployed stack, --data-table and --bucket "
    "with its outputs TableName and BucketName, or --state with the folder of a running `make run`, such as .stint."
)

LONGEST_VALUE = 100_000_000
"""Bytes of a row above which it is not read."""


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


class KVFile:
    """The rows of one table with the columns `key` and `value`."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection = connection
        self._table = '"' + table.replace('"', '""') + '"'

    def read_keys(self) -> Iterator[str]:
        """Yield all keys in their order."""
        for (key,) in self._connection.execute(f"SELECT key FROM {self._table} ORDER BY key"):  # noqa: S608 - quoted
            yield key if isinstance(key, str) else repr(key)

    def read(self, key: str) -> str:
        """Return the value of a key. Raises ValueError if it is not a text, or too long."""
        query = f"SELECT value FROM {self._table} WHERE key = ?"  # noqa: S608 - quoted
        try:
            found = self._connection.execute(query, (key,)).fetchone()
        except sqlite3.Error as error:
            raise ValueError(f"the value cannot be read: {error}") from None
        if found is None or not isinstance(found[0], str):
            raise ValueError("the value is not a text")
        return str(found[0])


@contextmanager
def opened(path: Path) -> Iterator[KVFile]:
    """Open a file, and find its table. Raises CommandError."""
    if not path.is_file():
        raise CommandError(f"There is no file {path}.")
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            # The file may be anybody's, and its schema must not call functions.
            connection.execute("PRAGMA trusted_schema = OFF")
            yield KVFile(connection, find_table(connection, path))
    except sqlite3.Error as error:
        raise CommandError(f"{path} cannot be read as an sqlite file: {error}.") from None


def find_table(connection: sqlite3.Connection, path: Path) -> str:
    """Return the name of the table with keys and values. Views are not read. Raises CommandError."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    for (name,) in connection.execute(query).fetchall():
        columns = {row[1] for row in connection.execute("SELECT * FROM pragma_table_info(?)", (name,))}
        if {"key", "value"} <= columns:
            return str(name)
    raise CommandError(
        f"{path} has no table with the columns key and value. Agents, sessions and turns are in the file that the "
        "server's configuration has as the persistence_store of its agents."
    )
