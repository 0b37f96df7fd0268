"""The part of Jinja that templates may use, and the charges that are written into a template.

The tree of a template is checked against lists of what is allowed before any of it is compiled: a node that no list has
is refused, so a construct that a later Jinja adds is refused, too. The checker is a transformer. It replaces each name,
field and item by a filter READ around it, and the list of each loop by a filter ITERATE, whose argument is the cost of
one iteration: NODE_COST for each node of the body, and the characters of its constants. `evaluation.py` has the
filters. Their names contain spaces, so that no template can write or avoid them.

The limits bound what compiling costs: Jinja and Python's compiler recurse over the tree.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from jinja2 import nodes
from jinja2.visitor import NodeTransformer

from stint.dataclasses import dataclass

MAX_NODES = 1_000
"""Maximum nodes of a template's tree."""
MAX_DEPTH = 30
"""Maximum levels of a template's tree."""
MAX_LOOPS = 2
"""Maximum levels of nested loops."""
MAX_NUMBER = 10**15
"""Largest number that a template can write: it takes few characters when it is shown."""
NODE_COST = 5
"""Characters that can be read in the time of one node."""
MAX_BRANCHES = 50
"""Maximum `elif` of an `if`. Python's compiler nests them."""

MESSAGES, LOOP = "messages", "loop"
FIELDS = frozenset({"content", "role"})
LOOP_FIELDS = frozenset(
    {"index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0", "previtem", "nextitem"}
)
READ, ITERATE = "read a value", "iterate over a list"
"""Names of filters that no template can write."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a filter or test: the maximum number of those without a name, and the names of the others."""

    maximum: int = 0
    names: frozenset[str] = frozenset()


TRUNCATION = frozenset({"length", "killwords", "end", "leeway"})
FILTERS = {
    **dict.fromkeys(("capitalize", "count", "first", "last", "length", "list", "lower"), Arguments()),
    **dict.fromkeys(("reverse", "string", "title", "tojson", "upper"), Arguments()),
    **dict.fromkeys(("d", "default"), Arguments(2, frozenset({"default_value", "boolean"}))),
    "join": Arguments(1, frozenset({"d"})),
    "map": Arguments(0, frozenset({"attribute"})),
    "rejectattr": Arguments(3),
    "replace": Arguments(3, frozenset({"count"})),
    "selectattr": Arguments(3),
    "trim": Arguments(1, frozenset({"chars"})),
    "truncate": Arguments(4, TRUNCATION),
}
TESTS = {
    **dict.fromkeys(("defined", "undefined", "none", "string", "number", "sequence", "iterable", "mapping"), 0),
    **dict.fromkeys(("eq", "equalto", "==", "ne", "!=", "in"), 1),
}
ALLOWED = frozenset(
    {
        *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.CondExpr),
        *(nodes.Name, nodes.Const, nodes.List, nodes.Tuple, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Keyword),
        *(nodes.Filter, nodes.Test, nodes.Concat, nodes.Add, nodes.Sub, nodes.Mod, nodes.Neg),
        *(nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not),
    }
)
WORDS = {
    nodes.Assign: "{% set %}",
    nodes.AssignBlock: "{% set %}",
    nodes.Macro: "{% macro %}",
    nodes.With: "{% with %}",
    nodes.Include: "{% include %}",
    nodes.Import: "{% import %}",
    nodes.FromImport: "{% from %}",
    nodes.Extends: "{% extends %}",
    nodes.Block: "{% block %}",
    nodes.CallBlock: "{% call %}",
    nodes.FilterBlock: "{% filter %}",
    nodes.Scope: "{% autoescape %}",
    nodes.Call: "a call",
    nodes.Mul: "'*'",
    nodes.Pow: "'**'",
    nodes.Div: "'/'",
    nodes.FloorDiv: "'//'",
}


class Unsupported(Exception):
    """A template has something that is not allowed. `line` is where."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line


class TemplateChecker(NodeTransformer):
    """Checks a tree, and adds filters that charge for what is read and for each iteration of a loop."""

    def __init__(self) -> None:
        self.names = [MESSAGES]
        self.count = self.cost = self.depth = self.loops = 0

    def visit(self, node: nodes.Node) -> nodes.Node:
        """Return the node that has the place of another one. Raises Unsupported."""
        self.count, self.cost = self.count + 1, self.cost + NODE_COST
        # The exact type: a subclass would be another construct.
        if type(node) not in ALLOWED:
            name = WORDS.get(type(node), f"{type(node).__name__.lower()!r}")
            raise Unsupported(f"{name} is not supported", node.lineno)
        if self.count > MAX_NODES or self.depth == MAX_DEPTH:
            limit = f"{MAX_NODES:,} parts" if self.count > MAX_NODES else f"{MAX_DEPTH} levels"
            raise Unsupported(f"a template has at most {limit}", node.lineno)
        self.depth += 1
        visited: nodes.Node = super().visit(node)
        self.depth -= 1
        return visited

    def visit_Const(self, node: nodes.Const) -> nodes.Node:  # noqa: N802 - named after the class
        """Count the characters of a constant, and refuse numbers that take long to be shown."""
        if isinstance(node.value, str):
            self.cost += len(node.value)
        elif isinstance(node.value, int) and abs(node.value) > MAX_NUMBER:
            raise Unsupported(f"numbers are at most {MAX_NUMBER:,}", node.lineno)
        return node

    def visit_Name(self, node: nodes.Name) -> nodes.Node:  # noqa: N802 - named after the class
        """Refuse names that have no value."""
        if node.name not in self.names:
            raise Unsupported(f"{node.name!r} is undefined; there is: {', '.join(self.names)}", node.lineno)
        return charged(node)

    def visit_Getattr(self, node: nodes.Getattr) -> nodes.Node:  # noqa: N802 - named after the class
        """Allow the fields of a message and those of `loop`."""
        if isinstance(node.node, nodes.Name) and node.node.name == LOOP:
            if not self.loops or node.attr not in LOOP_FIELDS:
                problem = f"has no {node.attr!r}" if self.loops else "is undefined outside of a loop"
                raise Unsupported(f"'loop' {problem}", node.lineno)
            return charged(node)
        self.check_field(node.node, node.attr)
        return charged(self.generic_visit(node))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:  # noqa: N802 - named after the class
        """Allow numbers, slices, and the fields of a message."""
        if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
            self.check_field(node.node, node.arg.value)
        if isinstance(node.arg, nodes.Slice) and isinstance(node.node, nodes.Const):
            raise Unsupported("a slice of a constant is not supported", node.lineno)
        return charged(self.generic_visit(node))

    def check_field(self, node: nodes.Node, field: str) -> None:
        """Raise Unsupported unless a value may have a field."""
        is_list = isinstance(node, nodes.Name) and node.name == MESSAGES
        if field not in FIELDS or is_list:
            problem = "'messages' is a list; name one with messages[0]" if is_list else f"there is no field {field!r}"
            raise Unsupported(f"{problem}. A message has content and role", node.lineno)

    def visit_If(self, node: nodes.If) -> nodes.Node:  # noqa: N802 - named after the class
        if len(node.elif_) > MAX_BRANCHES:
            raise Unsupported(f"an if has at most {MAX_BRANCHES} elif", node.lineno)
        return self.generic_visit(node)

    def visit_For(self, node: nodes.For) -> nodes.Node:  # noqa: N802 - named after the class
        """Charge for each iteration what its body has."""
        name = node.target.name if isinstance(node.target, nodes.Name) else ""
        # Python normalizes names that are not ASCII, so that two different ones could become the same variable.
        if node.recursive or not name.isascii() or name in ("", MESSAGES, LOOP):
            raise Unsupported("a loop is written {% for NAME in messages %}, with a name of your own", node.lineno)
        if self.loops == MAX_LOOPS:
            raise Unsupported(f"loops can be nested {MAX_LOOPS} times", node.lineno)
        # The list is evaluated once, so it is no part of what an iteration costs.
        iterated, before = self.visit_expression(node.iter), self.cost
        with self.scope_of(name):
            node.test = self.visit_expression(node.test) if node.test else None
            self.loops += 1
            node.body = [self.visit(each) for each in node.body]
            self.loops -= 1
        cost = nodes.Const(self.cost - before)
        # After the cost was taken: it runs at most once.
        node.else_ = [self.visit(each) for each in node.else_]
        node.iter = nodes.Filter(iterated, ITERATE, [cost], [], None, None, lineno=node.lineno)
        return node

    @contextmanager
    def scope_of(self, name: str) -> Iterator[None]:
        self.names.append(name)
        yield
        self.names.pop()

    def visit_expression(self, node: nodes.Node) -> nodes.Expr:
        return cast("nodes.Expr", self.visit(node))

    def visit_Filter(self, node: nodes.Filter) -> nodes.Node:  # noqa: N802 - named after the class
        allowed = FILTERS.get(node.name)
        if allowed is None or node.node is None:
            raise Unsupported(f"there is no filter {node.name!r}; there is: {', '.join(FILTERS)}", node.lineno)
        if node.name in ("map", "rejectattr", "selectattr"):
            self.check_attribute(node)
        return self.check_arguments(node, allowed)

    def check_attribute(self, node: nodes.Filter) -> None:
        """Raise Unsupported unless a filter names a field of messages."""
        given = [each.value for each in node.kwargs] if node.name == "map" else node.args
        field = given[0].value if given and isinstance(given[0], nodes.Const) else None
        if field not in FIELDS:
            example = "map(attribute='content')" if node.name == "map" else f"{node.name}('role', 'equalto', 'user')"
            raise Unsupported(f"the filter {node.name!r} is written {example}", node.lineno)

    def visit_Test(self, node: nodes.Test) -> nodes.Node:  # noqa: N802 - named after the class
        if node.name not in TESTS:
            raise Unsupported(f"there is no test {node.name!r}; there is: {', '.join(TESTS)}", node.lineno)
        return self.check_arguments(node, Arguments(TESTS[node.name]))

    def check_arguments(self, node: nodes.Filter | nodes.Test, allowed: Arguments) -> nodes.Node:
        """Raise Unsupported unless a filter or test can have its arguments."""
        names = {each.key for each in node.kwargs}
        if len(node.args) > allowed.maximum or node.dyn_args or node.dyn_kwargs or not names <= allowed.names:
            raise Unsupported(f"{node.name!r} has arguments that are not supported", node.lineno)
        return self.generic_visit(node)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802 - named after the class
        """Join texts by the filter that is charged for it."""
        parts = [self.visit_expression(each) for each in node.nodes]
        listed = nodes.List(parts, lineno=node.lineno)
        return nodes.Filter(listed, "join", [], [], None, None, lineno=node.lineno)


def charged(node: nodes.Node) -> nodes.Filter:
    return nodes.Filter(node, READ, [], [], None, None, lineno=node.lineno)
