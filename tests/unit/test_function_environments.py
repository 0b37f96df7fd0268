"""The variables of each function in the template are those that its settings read.

What a function can read is derived from its sources: the modules that it imports, also inside functions, and the
settings whose names follow `settings.` in them.
"""

import ast
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from infra.scripts.console_options import SIGN_IN
from infra.scripts.options import Options
from infra.scripts.published_versions import find_functions
from samtranslator.yaml_helper import yaml_parse

from stint.settings import Settings, variable_of

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers" / "core"
FUNCTIONS = sorted(path.parent.name for path in ROOT.glob("functions/*/app.py"))
POWERTOOLS = {"POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE", "POWERTOOLS_LOG_LEVEL"}
STREAMING = {"AWS_LAMBDA_EXEC_WRAPPER", "STREAM_ROUTE_TIMEOUT_SECONDS"}
"""Variables of the streaming runtime."""
SIZES = {"STINT_MAX_REQUEST_BYTES", "STINT_MAX_FETCHED_BYTES"}
"""Settings of functions with little memory. The others have their defaults."""
PAGE = {"STINT_AUTH", "STINT_CONSOLE_LOCAL", *SIGN_IN}
"""Variables of the console, which reads them itself. An open API has no issuer and no keys."""
READ = re.compile(r"(\w*settings|\w*settings\(\))")
MODULE = re.compile(r"stint(\.\w+)+")
NAMES = {*Settings.model_fields, *vars(Settings)}
"""Attributes that can be settings."""


class Source(ast.NodeVisitor):
    """The imports of a module, and the attributes of settings that it reads."""

    def __init__(self, path: Path) -> None:
        self.imports: set[str] = set()
        self.read: set[str] = set()
        self.visit(ast.parse(path.read_text()))

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> None:
        self.imports |= {alias.name for alias in node.names}

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.imports |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and MODULE.fullmatch(node.value):  # a module that is imported by its name
            self.imports.add(node.value)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in NAMES and READ.fullmatch(ast.unparse(node.value).rpartition(".")[2]):
            self.read.add(node.attr)
        self.generic_visit(node)


source_of = cache(Source)


@cache
def properties() -> dict[str, set[str]]:
    """Return the settings that each property of Settings reads."""
    methods = {name: value.fget for name, value in vars(Settings).items() if isinstance(value, property) and value.fget}
    found = {name: set(re.findall(r"self\.(\w+)", inspect.getsource(method))) for name, method in methods.items()}
    for _ in found:  # a property may read another one
        found = {name: read.union(*(found.get(each, set()) for each in read)) for name, read in found.items()}
    return found


def modules_of(function: str) -> set[Path]:
    """Return the sources of a function that are reached by imports."""
    reached, found = {ROOT / "functions" / function / "app.py"}, set[Path]()
    while reached:
        path = reached.pop()
        found.add(path)
        places = [CORE / name.replace(".", "/") for name in source_of(path).imports]
        files = [file for place in places for file in (place.with_suffix(".py"), place / "__init__.py")]
        reached |= {file for file in files if file.is_file()} - found
    return found - {CORE / "stint" / "settings.py"}


@cache
def readable(function: str) -> set[str]:
    """Return the variables of the settings that a function can read."""
    read = set[str]().union(*(source_of(path).read for path in modules_of(function)))
    read = read.union(*(properties().get(name, set()) for name in read))
    return {variable_of(name) for name in read & Settings.model_fields.keys()}


def template(auth: str = "authorizer") -> dict[str, Any]:
    parsed: dict[str, Any] = yaml_parse((ROOT / "template.yaml").read_text())
    Options(auth=auth).apply(parsed)
    return parsed


def declared(function: str, parsed: dict[str, Any]) -> set[str]:
    """Return the variables of a function of the template."""
    return set(parsed["Resources"][find_functions(parsed)[function]]["Properties"]["Environment"]["Variables"])


@pytest.mark.parametrize("auth", ["authorizer", "iam", "none"])
def test_a_function_has_the_variables_that_it_can_read_and_no_other(auth: str) -> None:
    parsed = template(auth)
    functions = [each for each in FUNCTIONS if each in find_functions(parsed)]
    given = {function: declared(function, parsed) for function in functions}
    every = set[str]().union(*given.values())

    if "console" in given:
        assert given.pop("console") - STREAMING == PAGE & every
    for function in given:
        own = given[function] - STREAMING - SIZES
        expected = (readable(function) | POWERTOOLS) & every - SIZES
        assert own == (expected if function != "sandbox" else {"SANDBOX_NAMESPACES"}), function
        streams = "AWS_LAMBDA_EXEC_WRAPPER" in given[function]
        assert given[function] & (STREAMING | SIZES) == (STREAMING | SIZES if streams else set()), function


def test_all_functions_together_have_no_common_variables() -> None:
    assert "Environment" not in template()["Globals"]["Function"]


def test_code_of_models_gets_no_name_of_a_table_or_secret() -> None:
    assert declared("sandbox", template()) == {"SANDBOX_NAMESPACES"}
    assert not {name for name in declared("authorizer", template()) if "SECRET" in name or name == "STINT_TABLE"}


def test_reads_are_found_in_modules_that_are_imported_late() -> None:
    assert {"STINT_OPENAI_SECRET_ARN", "STINT_MODELS", "STINT_SECOND_VECTOR_INDEX"} <= readable("turns")
    assert "STINT_UNSIGNED_CONTENT_UNTIL" in readable("responses") - readable("turns")
    assert readable("sandbox") == set()
