"""A name has one meaning: no two classes of the core share one."""

import ast
from collections import Counter
from pathlib import Path

CORE = Path(__file__).parents[2] / "layers" / "core" / "stint"


def test_no_two_classes_of_the_core_have_the_same_name() -> None:
    trees = [ast.parse(path.read_text()) for path in CORE.rglob("*.py")]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))

    assert len(names) > 300
    assert [name for name, count in names.items() if count > 1] == []
