"""Every regular expression of the product takes a time that grows with the text alone.

Those of callers never reach `re`: see `stint.regex`.
"""

import ast
import importlib
import pkgutil
import re
import time
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import stint
import stint_runtime

SIZE = 15_000
MOST_CPU_SECONDS = 0.1
"""A search whose time grows with the square of the text takes several times as long for one of these texts."""

PUMPS = ["a", "A", "0", "1.", " ", "\n", " \n", "\t", "-", "_", ".", ",", ":", "/", "=", "{", "<", '"', "'", "\\"]
PUMPS += ["a ", "a=", "aA", "S1,", "\u00e9", "a-", "://", "{a", "<a", "&a", "=1"]
BEGINNINGS = ["a", "say:", "say: a", "unsafe", "unsafe\n", "unsafe\nS1", 'a="', "{a", "<a", "<!--", "<meta", "<?xml"]
BEGINNINGS += ["; charset", "Root=1-", "https://", "<script", "after 1", "arn:aws:bedrock", "1.1", "text/"]
MATCHES = frozenset({"match", "fullmatch"})
"""Methods that look at one place of a text; all others look for a place."""

DYNAMIC = {
    "providers/openai/errors.py": 1,  # the names of parameters, in a provider's message
    "models/scripted/model.py": 1,  # names of tools: letters, digits, _ and -
    "services/responses/code_runs.py": 1,  # the name of a file, as a literal at the beginning of a word
    "shields/phrases.py": 1,  # one set of characters
}
"""Expressions that are put together where they are used, by file."""

SOURCES = {path: path.read_text() for path in Path(stint.__file__).parent.rglob("*.py")}
TREES = {path: ast.parse(text) for path, text in SOURCES.items() if re.search(r"^ *import re$", text, re.MULTILINE)}
METHOD = re.compile(r"\b(\w+)\.(\w+)\(")


def calls(tree: ast.AST) -> Iterator[tuple[str, str, ast.Call]]:
    """Yield the calls of methods: the name of the object, that of the method, and the call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            value = node.func.value
            name = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
            yield name, node.func.attr, node


def functions(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the functions of a module and the methods of its classes."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        else:
            yield from functions(node)


def compiled() -> Iterator[tuple[re.Pattern[Any], frozenset[str]]]:
    """Yield the expressions that modules hold, with the methods of theirs that are called."""
    used: dict[str, set[str]] = {}
    for text in SOURCES.values():
        for name, method in METHOD.findall(text):
            used.setdefault(name, set()).add(method)
    for package in (stint, stint_runtime):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(found.name)).items():
                for each in value.values() if isinstance(value, dict) else (value,):
                    if isinstance(each, re.Pattern):
                        yield each, frozenset(used.get(name, {"search"}))


def inline() -> Iterator[tuple[str, str, str | None]]:
    """Yield the expressions that functions hold, by file and method; None for those that are put together there."""
    for path, tree in TREES.items():
        found = [(method, call) for each in functions(tree) for name, method, call in calls(each) if name == "re"]
        for method, call in found:
            pattern = call.args[0]
            if method != "escape":
                text = pattern.value if isinstance(pattern, ast.Constant) else None
                name = path.relative_to(Path(stint.__file__).parent).as_posix()
                yield name, method, text if isinstance(text, str) else None


FOUND = list(inline())
INLINE = [(re.compile(each, re.IGNORECASE), frozenset({method})) for _, method, each in FOUND if each]
PATTERNS = sorted([*compiled(), *INLINE], key=lambda each: repr(each[0].pattern))


def texts() -> Iterator[str]:
    for pump, end in product(PUMPS, ("", "!")):
        yield pump * (SIZE // len(pump)) + end
    for beginning, pump in product(BEGINNINGS, (" ", "\n", "a", "1", "S1, ")):
        yield beginning + pump * (SIZE // len(pump)) + "!"


@pytest.mark.parametrize(("pattern", "methods"), PATTERNS, ids=[repr(each.pattern)[:60] for each, _ in PATTERNS])
def test_an_expression_takes_a_time_that_grows_with_the_text_alone(
    pattern: re.Pattern[Any], methods: frozenset[str]
) -> None:
    for text in texts():
        assert min_cpu_seconds(pattern, methods, text) < MOST_CPU_SECONDS, (text[:20], text[-20:])


def min_cpu_seconds(pattern: re.Pattern[Any], methods: frozenset[str], text: str) -> float:
    """Return the CPU time of a search. A slow one is repeated once: a garbage collection may have been part of it."""
    first = cpu_seconds(pattern, methods, text)
    return first if first < MOST_CPU_SECONDS else min(first, cpu_seconds(pattern, methods, text))


def cpu_seconds(pattern: re.Pattern[Any], methods: frozenset[str], text: str) -> float:
    given: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    begin = time.process_time()
    for method in methods & MATCHES:
        getattr(pattern, method)(given)
    if not methods <= MATCHES:
        for _ in pattern.finditer(given):
            pass
    return time.process_time() - begin


def test_no_other_expression_is_put_together_where_it_is_used() -> None:
    found = Counter(path for path, _, pattern in FOUND if pattern is None)

    assert found == DYNAMIC


def test_a_quadratic_expression_would_be_noticed() -> None:
    quadratic = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

    assert min_cpu_seconds(quadratic, frozenset({"sub"}), "a" * SIZE) > MOST_CPU_SECONDS
