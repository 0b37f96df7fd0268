"""A constant that means one thing is defined once."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

CORE = Path(__file__).parents[2] / "layers/core/stint"
Constant = tuple[str, str]


def constants_of(source: str) -> Iterator[Constant]:
    """Read the name of each constant and what it means: its value, and for a number also the text below it."""
    body = ast.parse(source).body
    for statement, following in zip_longest(body, body[1:]):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                pass
            case _:
                continue
        if len(name) > 1 and name.isupper() and not isinstance(value, ast.BinOp | ast.JoinedStr):
            yield name, ast.unparse(value) + (text_of(following) if isinstance(value, ast.Constant) else "")


def text_of(statement: ast.stmt | None) -> str:
    match statement:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return text
        case _:
            return ""


def test_a_constant_of_one_meaning_is_defined_once() -> None:
    modules: defaultdict[Constant, list[str]] = defaultdict(list)
    for path in sorted(CORE.rglob("*.py")):
        for constant in constants_of(path.read_text()):
            modules[constant].append(str(path.relative_to(CORE)))
    assert {constant: found for constant, found in modules.items() if len(found) > 1} == {}


def test_numbers_of_one_name_differ_by_the_text_below_them() -> None:
    one, other = 'LIMIT = 5\n"""Files."""\n', 'LIMIT = 5\n"""Tools."""\n'
    assert set(constants_of(one)) != set(constants_of(other))
    assert set(constants_of(one)) == {("LIMIT", "5Files.")}
