"""Counts of `make measure`, in small sources."""

from pathlib import Path
from textwrap import dedent

import pytest
from infra.scripts.measure import render
from infra.scripts.source_counts import (
    Module,
    Row,
    count_code,
    count_comments,
    count_context_reads,
    count_importers,
    count_late_imports,
    count_sources,
    function_lengths,
    has_short_docstring,
    percentile,
    read_modules,
)


def module(name: str, text: str, *, is_package: bool = False) -> Module:
    return Module(name, dedent(text), is_package)


def by_name(*modules: Module) -> dict[str, Module]:
    return {each.name: each for each in modules}


def test_comments_are_counted_without_directives() -> None:
    text = 'a = "# text"  # why\n# alone\nb = 1  # noqa: E501 - long\nc = 2  # type: ignore[x]\n'

    assert count_comments(text) == 2


@pytest.mark.parametrize(
    ("docstring", "is_short"),
    [('"""One line."""', True), ("", True), ("1", True), ('"""One line.\n\nAnother."""', False)],
)
def test_a_long_module_needs_more_than_a_line(docstring: str, is_short: bool) -> None:
    assert has_short_docstring(Module("m", f"{docstring}\n" + "a = 1\n" * 100)) is is_short
    assert not has_short_docstring(Module("m", '"""One line."""\n' + "a = 1\n" * 99))


def test_an_import_inside_of_functions_is_counted_once() -> None:
    found = module(
        "m",
        """
        import a
        if a:
            import b
        def outer():
            import c, d
            def inner():
                from e import f, g
        class Some:
            async def method(self):
                import h
        """,
    )

    assert count_late_imports(found) == 3


def test_lengths_of_functions_are_sorted() -> None:
    found = module("m", "def long():\n    a = 1\n\n    return a\n\n@cache\ndef short(): ...\n")

    assert function_lengths([found]) == [1, 4]


@pytest.mark.parametrize(("share", "expected"), [(0.5, 5), (0.9, 9), (0.91, 10), (1.0, 10)])
def test_a_percentile_is_one_of_the_values(share: float, expected: int) -> None:
    assert percentile(list(range(1, 11)), share) == expected
    assert percentile([], share) == 0


def test_importers_are_other_modules_that_import_in_any_way() -> None:
    modules = by_name(
        module("stint", "", is_package=True),
        module("stint.a", "from stint.b import name\nfrom stint.b import other\nimport stint.a"),
        module("stint.b", "from stint import c\nfrom .d import name"),
        module("stint.c", "def f():\n    import stint.d"),
        module("stint.d", "part = lazy('stint.a:Name', 'stint.nothing', 'about stint.b')"),
    )

    assert count_importers(modules) == {"stint": 0, "stint.a": 1, "stint.b": 1, "stint.c": 1, "stint.d": 2}


def test_reads_of_context_variables_are_those_outside_of_the_modules_of_contexts() -> None:
    modules = by_name(
        module(
            "stint.caller",
            """
            from contextvars import ContextVar
            _tenant: ContextVar[str] = ContextVar("tenant")
            def find_tenant():
                return _tenant.get()
            def require_tenant():
                return find_tenant() or fail()
            def set_tenant(tenant):
                _tenant.set(tenant)
            """,
        ),
        module(
            "stint.user",
            """
            from stint import caller
            from stint.caller import find_tenant as find, require_tenant, set_tenant
            def use():
                set_tenant("t")
                return find() + require_tenant() + caller.find_tenant() + {}.get("x")
            """,
        ),
        module("stint.own", "lock = ContextVar[str]('lock')\nlock.get()\nlock.set(1)"),
        module("stint.other", "def find_tenant(): ...\nfind_tenant()"),
    )

    assert count_context_reads(modules) == {"stint.user": 3, "stint.own": 1}


def test_a_tree_is_counted_by_the_names_that_python_gives_its_modules(tmp_path: Path) -> None:
    files = {
        "layers/core/stint/__init__.py": "",
        "layers/core/stint/store/__init__.py": "",
        "layers/core/stint/store/keys.py": "# why\nA = 1\n",
        "layers/runtime/python/stint_runtime/loop.py": "from stint.store.keys import A\n",
        "functions/turns/app.py": "import stint\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    assert set(read_modules(tmp_path, "layers", "functions")) == {
        *("stint", "stint.store", "stint.store.keys", "stint_runtime.loop", "functions.turns.app")
    }
    rows = {row.label: row.value for row in count_sources(tmp_path)}
    assert rows["product lines of layers/core"] == "2"
    assert rows["comment lines per 1,000 lines"] == "500.0"
    assert rows["modules of store/"] == "1"
    assert rows["modules with one importer"] == "2"


def test_a_table_has_a_column_for_each_tree() -> None:
    table = render({"this": [Row("lines", "7"), Row("files", "1 in 2")], "base": [Row("lines", "1,000")]})

    assert table.splitlines() == [
        "                 this            base",
        "lines               7           1,000",
        "files          1 in 2               -",
    ]


def test_code_is_counted_without_texts_comments_and_imports() -> None:
    text = '"""M."""\n\nimport os\n\nA = (\n    1,\n)\n"""Text."""\n\n\ndef f():  # why\n    """F."""\n    return A\n'
    assert count_code(Module("m", text)) == 5
