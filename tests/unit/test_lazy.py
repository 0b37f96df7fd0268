"""Lazy parts: each name is that of the annotated class, and a part is made once, when first used."""

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pytest

from stint.lazy import Lazy, lazy, load

if TYPE_CHECKING:
    from fractions import Fraction

CORE = Path(__file__).parents[2] / "layers" / "core"
T = TypeVar("T")
Part: TypeAlias = Lazy["Owner", T]


class Owner:
    numerator = 3
    half: "Part[Fraction]" = lazy("fractions:Fraction", lambda self, cls: cls(self.numerator, 6))
    wrong: "Part[Fraction]" = lazy("fractions:Fractions", lambda self, cls: cls(self.numerator, 6))


def modules_of(tree: ast.Module) -> dict[str, str]:
    """Return the module of each imported name of a source."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {each.name: str(node.module) for node in imports for each in node.names}


def lazy_parts(source: str) -> list[tuple[str, str]]:
    """Return the name of each lazy part of a source, and the name that its annotation stands for."""
    tree = ast.parse(source)
    modules = modules_of(tree)
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign(
                annotation=ast.Constant(value=str(text)),
                value=ast.Call(func=ast.Name(id="lazy"), args=[ast.Constant(value=str(name)), *_]),
            ):
                annotated = re.findall(r"\w+", text)[-1]
                found.append((name, f"{modules.get(annotated)}:{annotated}"))
    return found


SOURCES = {path.relative_to(CORE).as_posix(): path.read_text() for path in sorted(CORE.rglob("*.py"))}
PARTS = [(path, *part) for path, source in SOURCES.items() for part in lazy_parts(source)]


def test_each_lazy_part_has_an_annotation() -> None:
    calls = {path: len(re.findall(r"\blazy\(\s*\"", source)) for path, source in SOURCES.items()}

    assert {path: count for path, count in calls.items() if count != len(lazy_parts(SOURCES[path]))} == {}
    assert sum(calls.values()) > 30


@pytest.mark.parametrize(("path", "name", "annotated"), PARTS)
def test_a_lazy_parts_name_is_that_of_its_annotation(path: str, name: str, annotated: str) -> None:
    assert name == annotated
    assert isinstance(load(name), type)


def test_a_lazy_part_is_made_once() -> None:
    owner = Owner()

    assert "half" not in vars(owner)
    assert owner.half is owner.half
    assert owner.half * 2 == 1


def test_a_wrong_name_raises_at_the_first_use() -> None:
    with pytest.raises(AttributeError, match="Fractions"):
        _ = Owner().wrong


def test_a_wrong_name_is_found_in_a_source() -> None:
    source = "from stint.a import B\n\nclass C:\n    b: 'Part[B]' = lazy('stint.a:Bee', lambda self, cls: cls())"

    assert lazy_parts(source) == [("stint.a:Bee", "stint.a:B")]
