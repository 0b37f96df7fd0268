"""A name has one meaning: no two classes of the core share one."""

import re
from collections import Counter
from pathlib import Path

CORE = Path(__file__).parents[2] / "layers" / "core" / "stint"
CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


def test_no_two_classes_of_the_core_have_the_same_name() -> None:
    names = Counter(name for path in CORE.rglob("*.py") for name in CLASS.findall(path.read_text()))

    assert len(names) > 300
    assert [name for name, count in names.items() if count > 1] == []
