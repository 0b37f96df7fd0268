"""Check prose and names against the project's rules, as part of `make lint`."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARKDOWN_WIDTH = 110
WIDE_TABLES = ("docs/settings.md",)
"""Pages whose tables a script writes, from texts that have their own limits."""

OPENING = re.compile(r"(giv(e|es|en|ing)|tell(s|ing)?|told|say(s|ing)?|said|what\w*|who\w*|of)\b", re.IGNORECASE)
WORD = "(agent|background|call|chat|claim|conversation|event|history|hold|inclusion|input|item|life|live|log|message"
WORD += "|model|output|owned|queue|reader|record|request|response|run|session|shield|step|stream|task|turn|writer)s?"
JOINED = re.compile(f"(?!eventstream$){WORD}{WORD}")  # `application/vnd.amazon.eventstream` is AWS's word
URL = re.compile(r"https?://\S+")
Files = dict[str, str]  # path -> text


def long_markdown_lines(files: Files) -> Iterator[str]:
    """Yield Markdown lines that are too long, not counting URLs."""
    for path, text in files.items():
        for number, line in enumerate(text.splitlines() if path.endswith(".md") else (), 1):
            if len(URL.sub("", line)) > MARKDOWN_WIDTH and not (path in WIDE_TABLES and line.startswith("|")):
                yield f"{path}:{number}: {len(line)} characters, at most {MARKDOWN_WIDTH}. Break the line."


def joined_file_names(files: Files) -> Iterator[str]:
    """Yield file names that join two words without an underscore."""
    for path in files:
        if JOINED.fullmatch(Path(path).stem):
            yield f"{path}: separate the words of the file name with an underscore."


def docstring_openings(files: Files) -> Iterator[str]:
    """Yield docstrings, also in tests, that begin with a word such as Give, Tell or What."""
    for path, tree in parse(files, excluded=()):
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                docstring = ast.get_docstring(node) or ""
                if OPENING.match(docstring):
                    line = node.body[0].lineno
                    yield f'{path}:{line}: begins with "{docstring.split()[0]}". Begin with Return, Read, Write ...'


def duplicate_classes(files: Files) -> Iterator[str]:
    """Yield class names that the core defines twice. A wire class may share its name with one other class."""
    places: dict[str, list[tuple[str, set[str]]]] = defaultdict(list)
    bases: dict[str, set[str]] = defaultdict(set)
    for path, tree in parse({path: text for path, text in files.items() if path.startswith("layers/core/stint/")}):
        for node in (each for each in tree.body if isinstance(each, ast.ClassDef)):
            parents = {ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases}
            places[node.name].append((f"{path}:{node.lineno}", parents))
            bases[node.name] |= parents
    wire = {"Schema"}
    while more := {name for name, parents in bases.items() if parents & wire} - wire:
        wire |= more
    for name, found in places.items():
        on_wire = sum(bool(parents & wire) for _, parents in found)
        if on_wire > 1 or len(found) - on_wire > 1:
            yield f"{found[1][0]}: class {name} is also defined at {found[0][0]}. Rename one."


def parse(files: Files, excluded: tuple[str, ...] = ("tests/", "docs/")) -> Iterator[tuple[str, ast.Module]]:
    """Yield the syntax tree of each Python file, by default except tests and examples."""
    for path, text in files.items():
        if path.endswith(".py") and not path.startswith(excluded):
            yield path, ast.parse(text)


RULES = (
    long_markdown_lines,
    joined_file_names,
    docstring_openings,
    duplicate_classes,
)


def main() -> int:
    """Print every violation, and return the exit code."""
    listed = subprocess.check_output(["git", "ls-files", "*.md", "*.py"], cwd=ROOT, text=True)  # noqa: S607
    files = {path: (ROOT / path).read_text() for path in listed.split() if (ROOT / path).exists()}
    problems = list(chain.from_iterable(rule(files) for rule in RULES))
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
