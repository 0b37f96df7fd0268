"""Counts of the product's sources, which `make measure` prints. They describe the code; no test holds them.

- A comment line has a `#` comment other than a directive of a tool (`noqa`, `type:`).
- A read of a context variable is a call of `get` of a variable that a module makes with `ContextVar`, or of a function
  that reads one: a function of caller, metering, run_stop, observability or log_keys that calls `get`, or another such
  function of its own module. Calls inside of these five modules are not counted.
- The importers of a module are the other modules of `layers` and `functions` that import it or a name of it, anywhere
  in them, also for types. A string `"stint.store.files:FileStore"` or `"stint.store.files"`, by which a part is
  imported when it is used, is an import, too.
- A function is as long as its lines from `def` to its last one.
"""

import ast
import io
import math
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

CORE = "layers/core"
IMPORTERS = ("layers", "functions")
CONTEXTS = ("caller", "metering", "run_stop", "observability", "log_keys")
"""Modules of the product that have the context of a request and its run."""

DIRECTIVE = re.compile(r"#\s*(noqa|type:)")
REFERENCE = re.compile(r"(stint(?:\.\w+)+)(?::\w+)?")
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}

LONG = 100
"""Lines from which a module needs more than a line of docstring."""

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A module of the product by its name, and its text."""

    name: str
    text: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())


@dataclass(frozen=True)
class Row:
    """A line of the table: what is counted, and its number or numbers."""

    label: str
    value: str


def read_modules(root: Path, *folders: str) -> dict[str, Module]:
    """Read the modules below folders of a tree. Names begin below the folder on the path of Python."""
    found = dict[str, Module]()
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            parts = [*path.relative_to(root).with_suffix("").parts]
            if parts[:2] == ["layers", "core"] or parts[:3] == ["layers", "runtime", "python"]:
                parts = parts[2 if parts[1] == "core" else 3 :]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = Module(name, path.read_text(), is_package)
    return found


def count_comments(text: str) -> int:
    """Return the number of lines with a comment, without directives."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string) for token in tokens)


def count_code(module: Module) -> int:
    """Return the number of lines with code: without blank lines, comments, texts of documentation and imports."""
    left_out = set[int]()
    for node in module.nodes:
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        ):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - left_out)


def has_short_docstring(module: Module) -> bool:
    """Return whether a long module begins with one line of text, or none."""
    first = module.tree.body[0] if module.tree.body else None
    is_text = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    lines = (first.end_lineno or 0) - first.lineno + 1 if first and is_text else 0
    return module.lines > LONG and lines <= 1


def functions_of(module: Module) -> Iterator[FunctionNode]:
    """Yield all functions, also methods and those inside others."""
    yield from (node for node in module.nodes if isinstance(node, FunctionNode))


def count_late_imports(module: Module) -> int:
    """Return the number of import statements inside functions."""
    late = {
        node
        for function in functions_of(module)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(late)


def function_lengths(modules: Iterable[Module]) -> list[int]:
    """Return the sorted lengths of all functions, in lines."""
    functions = [function for module in modules for function in functions_of(module)]
    return sorted((each.end_lineno or each.lineno) - each.lineno + 1 for each in functions)


def percentile(ordered: list[int], share: float) -> int:
    """Return the least value that at least a share of the values do not exceed; 0 without values."""
    return ordered[math.ceil(len(ordered) * share) - 1] if ordered else 0


def count_importers(modules: Mapping[str, Module]) -> dict[str, int]:
    """Return the number of other modules that import each module."""
    counts = dict.fromkeys(modules, 0)
    for module in modules.values():
        for name in imports_of(module, modules) - {module.name}:
            counts[name] += 1
    return counts


def imports_of(module: Module, modules: Mapping[str, Module]) -> set[str]:
    """Return the modules that a module imports, or from which it imports names."""
    named = set[str]()
    for node in module.nodes:
        if isinstance(node, ast.Import):
            named.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = source_of(node, module)
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                named.add(inner if inner in modules else source)
        elif isinstance(node, ast.Constant) and (match := REFERENCE.fullmatch(str(node.value))):
            named.add(match[1])
    return named & modules.keys()


def source_of(node: ast.ImportFrom, module: Module) -> str:
    """Return the module from which a statement imports, also a relative one."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + (1 if module.is_package else 0)]
    return ".".join([*parts, *filter(None, [node.module])])


def context_variables(module: Module) -> set[str]:
    """Return the names that a module gives to context variables."""
    return {
        target.id
        for node in module.nodes
        if isinstance(node, ast.Assign | ast.AnnAssign) and is_made(node.value)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


def is_made(value: ast.expr | None) -> bool:
    """Return whether an expression makes a context variable."""
    function = value.func if isinstance(value, ast.Call) else None
    function = function.value if isinstance(function, ast.Subscript) else function
    return isinstance(function, ast.Name) and function.id == "ContextVar"


def gets_of(nodes: Iterable[ast.AST], variables: set[str]) -> int:
    """Return the number of calls of `get` of context variables."""
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "get"
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in variables
        for node in nodes
    )


def readers_of(module: Module) -> set[str]:
    """Return the functions of a module that read a context variable, also by another function of it."""
    functions = {node.name: list(ast.walk(node)) for node in module.tree.body if isinstance(node, FunctionNode)}
    variables = context_variables(module)
    readers = {name for name, nodes in functions.items() if gets_of(nodes, variables)}
    while more := {name for name, nodes in functions.items() if called(nodes) & readers} - readers:
        readers |= more
    return readers


def called(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the plain names that are called."""
    return {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def count_context_reads(modules: Mapping[str, Module]) -> dict[str, int]:
    """Return the number of reads of context variables in each module that has any."""
    contexts = [modules[name] for name in (f"stint.{name}" for name in CONTEXTS) if name in modules]
    readers = {module.name: readers_of(module) for module in contexts}
    counts = {name: count_reads(module, readers) for name, module in modules.items() if name not in readers}
    return {name: count for name, count in counts.items() if count}


def count_reads(module: Module, readers: Mapping[str, set[str]]) -> int:
    """Return the number of calls in a module that read a context variable. `readers` are functions by their module."""
    names, qualified = set[str](), set[tuple[str, str]]()
    for node in module.nodes:
        if isinstance(node, ast.ImportFrom):
            source = source_of(node, module)
            for alias in node.names:
                if alias.name in readers.get(source, ()):
                    names.add(alias.asname or alias.name)
                for name in readers.get(f"{source}.{alias.name}", ()):
                    qualified.add((alias.asname or alias.name, name))
    count = gets_of(module.nodes, context_variables(module))
    for node in module.nodes:
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Name):
            count += function.id in names
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            count += (function.value.id, function.attr) in qualified
    return count


def count_sources(root: Path) -> list[Row]:
    """Return the rows that are counted in the sources of a tree."""
    core = read_modules(root, CORE)
    every = read_modules(root, *IMPORTERS)
    modules = core.values()
    lines = sum(module.lines for module in modules)
    comments = sum(count_comments(module.text) for module in modules)
    reads = count_context_reads(core)
    lengths = function_lengths(modules)
    importers = count_importers(every)
    store = [module for module in modules if module.name.startswith("stint.store.")]
    return [
        Row("product lines of layers/core", f"{lines:,}"),
        Row("lines of code among them", f"{sum(map(count_code, modules)):,}"),
        Row("comment lines per 1,000 lines", f"{comments / lines * 1000:.1f}"),
        Row(f"modules over {LONG} lines with one line of docstring", f"{sum(map(has_short_docstring, modules))}"),
        Row("calls that read a context variable", f"{sum(reads.values())} in {len(reads)} files"),
        Row("imports inside functions", f"{sum(map(count_late_imports, modules))}"),
        Row("modules of store/", f"{sum(not module.is_package for module in store)}"),
        Row("modules with one importer", f"{sum(importers[name] == 1 for name in core)}"),
        Row("lines of functions: median, p90, longest", " / ".join(map(str, describe(lengths)))),
    ]


def describe(lengths: list[int]) -> tuple[int, int, int]:
    """Return the median, the 90th percentile and the maximum."""
    return percentile(lengths, 0.5), percentile(lengths, 0.9), percentile(lengths, 1.0)
