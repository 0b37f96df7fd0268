"""`python -m stint.cli import llama-stack`."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.services.cli.test_key_commands import Shell, shell
from tests.services.imports.kv_files import FIRST, session_rows, turn_value, write_kv_file

__all__ = ["shell"]

ROWS = session_rows(turn_value(FIRST, "Hello", "Hi", 1))


def test_a_file_is_imported_into_a_running_stack(shell: Shell, tmp_path: Path) -> None:
    path = write_kv_file(tmp_path / "kv.db", ROWS)

    output = shell.text("import", "llama-stack", str(path), "--tenant", shell.tenant)
    again = shell.json("import", "llama-stack", str(path), "--tenant", shell.tenant)

    lines = [line.split() for line in output.splitlines()]
    assert lines[0] == ["IN", "THE", "FILE", "IMPORTED", "ALREADY", "THERE"]
    assert lines[1:] == [[kind, "1", "1", "0"] for kind in ("agents", "sessions", "turns", "steps")]
    assert again["turns"] == {"found": 1, "imported": 0, "present": 1}


def test_bad_rows_are_printed_and_the_command_fails(shell: Shell, tmp_path: Path) -> None:
    path = write_kv_file(tmp_path / "kv.db", ROWS | {f"agent:{FIRST}": "{"})

    code, output, errors = shell.run("import", "llama-stack", str(path), "--tenant", shell.tenant)

    assert code == 1
    assert f"agent:{FIRST}: " in output
    assert "1 rows were not imported. The others were." in errors


def write_responses(path: Path) -> None:
    """Write a file as the original has it for responses."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE openai_responses (id TEXT PRIMARY KEY, response_object TEXT)")
        connection.commit()


def write_view(path: Path) -> None:
    """Write a file whose only table is a view that never ends."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "CREATE VIEW kvstore AS WITH RECURSIVE n(key, value) AS"
            " (SELECT 'a', 'b' UNION ALL SELECT key, value FROM n) SELECT key, value FROM n"
        )
        connection.commit()


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        (None, "There is no file"),
        (lambda path: path.write_bytes(b"not sqlite" * 100), "cannot be read as an sqlite file"),
        (write_responses, "has no table"),
        (write_view, "has no table"),
    ],
)
def test_a_file_without_rows_of_keys_and_values_is_refused(
    shell: Shell, tmp_path: Path, write: object, problem: str
) -> None:
    path = tmp_path / "kv.db"
    if callable(write):
        write(path)

    code, _, errors = shell.run("import", "llama-stack", str(path), "--tenant", shell.tenant)

    assert (code, problem in errors) == (1, True), errors


def test_a_file_is_not_changed(shell: Shell, tmp_path: Path) -> None:
    path = write_kv_file(tmp_path / "kv.db", ROWS)
    before = path.read_bytes()

    shell.text("import", "llama-stack", str(path), "--tenant", shell.tenant)

    assert (path.read_bytes(), [each.name for each in tmp_path.iterdir() if "kv" in each.name]) == (before, ["kv.db"])


def test_a_dry_run_says_that_nothing_was_written(shell: Shell, tmp_path: Path) -> None:
    path = write_kv_file(tmp_path / "kv.db", ROWS)

    assert "Nothing was written" in shell.text(
        "import", "llama-stack", str(path), "--tenant", shell.tenant, "--dry-run"
    )
    assert shell.json("import", "llama-stack", str(path), "--tenant", shell.tenant)["agents"]["present"] == 0


def test_without_a_stack_the_error_names_its_options(shell: Shell, tmp_path: Path) -> None:
    path = write_kv_file(tmp_path / "kv.db", ROWS)

    code, _, errors = shell.run("import", "llama-stack", str(path), options=())

    assert code == 1
    assert [option for option in ("--stack", "--data-table", "--bucket", "--state") if option not in errors] == []
