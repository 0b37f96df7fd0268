"""The sqlite file in which a Llama Stack server stores keys and values. It is opened for reading only."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from stint.cli.group import CommandError

LONGEST_VALUE = 100_000_000
"""Bytes of a row above which it is not read."""


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
