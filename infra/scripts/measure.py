"""`make measure`: how large the product is and how much of it a turn passes, beside another commit with BASE=commit.

`source_counts` defines what is counted in the sources, `warm_turn` what is measured in a process. The files to change
for a new route are not counted: no source tells which of them a route needs.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from infra.bench.base import Tree, base_tree, this_tree
from infra.local.errors import LocalCloudError
from infra.scripts.source_counts import Row, count_sources

PROGRAM = this_tree().root / "infra" / "scripts" / "warm_turn.py"
SECONDS = 120


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="make measure")
    parser.add_argument("--base", help="a commit, whose numbers are printed beside")
    options = parser.parse_args(arguments)
    tree = this_tree()
    try:
        measured = {tree.name: measure(tree)}
        if options.base:
            with base_tree(options.base) as base:
                measured[base.name] = measure(base)
    except LocalCloudError as error:
        sys.exit(str(error))
    print(render(measured))


def measure(tree: Tree) -> list[Row]:
    """Return the rows of a tree. Raises LocalCloudError if its turn cannot be measured."""
    return [*count_sources(tree.root), *trace(tree)]


def trace(tree: Tree) -> list[Row]:
    """Return the rows that are measured in a process of a tree. Raises LocalCloudError if it fails."""
    path = os.pathsep.join(str(tree.root / each) for each in ("layers/core", "layers/runtime/python", "."))
    command = [str(tree.python), str(PROGRAM), str(tree.root / "layers")]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": path}
    try:
        done = subprocess.run(
            command, cwd=tree.root, env=environment, capture_output=True, text=True, check=True, timeout=SECONDS
        )
    except subprocess.CalledProcessError as error:
        raise LocalCloudError(f"The turn of {tree.name} failed: {error.stderr.strip()[-2000:]}") from None
    except subprocess.TimeoutExpired:
        raise LocalCloudError(f"The turn of {tree.name} took longer than {SECONDS} s.") from None
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return [
        Row("middleware of a streaming app", str(found["middleware"])),
        Row("files that a warm turn passes", str(found["files"])),
    ]


def render(measured: dict[str, list[Row]]) -> str:
    """Return a table with a line for each row, and a column for each tree."""
    trees = list(measured)
    values = [{row.label: row.value for row in rows} for rows in measured.values()]
    width = max(len(label) for rows in values for label in rows)
    lines = [" " * width + "".join(f"{name:>16}" for name in trees)]
    lines += [f"{label:{width}}" + "".join(f"{rows.get(label, '-'):>16}" for rows in values) for label in values[0]]
    return "\n".join(lines)


if __name__ == "__main__":
    main(sys.argv[1:])
