"""The evaluation of templates: Jinja's sandbox, with a budget for what a template reads and makes.

The unit of the budget is a character that is read or made; an item of a list counts as one. Every charge comes before
the work, so a template stops before it takes the time or memory. These places charge:

  READ      a filter that `syntax.py` has written around each name, field and item of the template
  ITERATE   likewise around the list of each loop: each iteration costs what the loop's body has
  filters   Jinja's own, by COSTS: the largest result that they can have for their arguments
  show      each value that is written into the result
  + - %     texts are added by their lengths; numbers are limited by the syntax

Fields and filters are looked up in lists at run time, too, not only when the template is checked: which value a name
has is known only here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, SupportsIndex, cast

from jinja2 import Undefined
from jinja2.exceptions import TemplateRuntimeError
from jinja2.filters import FILTERS
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS

from stint.dataclasses import dataclass
from stint.jinja.syntax import FIELDS, ITERATE, LOOP_FIELDS, READ
from stint.jinja.syntax import TESTS as ALLOWED_TESTS

MAX_WORK = 2_000_000
"""Maximum characters that a template reads and makes, each as often as it is evaluated. Parts of loops count, too."""

REPR, JSON, CASE = 10, 12, 3
"""Characters that one becomes at most: in a list that is shown, in JSON (a pair of escapes), in another case."""

Filter = Callable[..., Any]
Cost = Callable[[Sequence[Any]], int]


class WorkLimitExceeded(Exception):
    """A template reads or makes too many characters."""


class TemplateMessage(str):
    """A message: its text, which is its content, too."""

    __slots__ = ()
    role = "user"

    @property
    def content(self) -> str:
        return self


class TemplateBudget:
    """The work that is left."""

    def __init__(self) -> None:
        self.left = MAX_WORK

    def charge(self, work: int) -> None:
        """Take work from the budget before it is done. Raises WorkLimitExceeded."""
        # The 1 is for the call itself, which takes time even for an empty text.
        self.left -= 1 + work
        if self.left < 0:
            raise WorkLimitExceeded


@dataclass(frozen=True, slots=True)
class ChargedList:
    """A list whose iterations are charged."""

    items: Sequence[Any]
    cost: int
    budget: TemplateBudget

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Any]:
        for item in self.items:
            self.budget.charge(self.cost)
            yield item


def size_of(value: object) -> int:
    """Return the characters of a text, or the number of a list's items."""
    return len(value) if isinstance(value, str | list | tuple) else 1


def shown_size(value: object) -> int:
    """Return the maximum number of characters that a value is shown with."""
    if isinstance(value, list | tuple):
        return sum(REPR * (shown_size(each) + 1) for each in value)
    return len(value) if isinstance(value, str) else 20


def cost_of_reading(values: Sequence[Any]) -> int:
    return sum(map(size_of, values))


def cost_of_copying(values: Sequence[Any]) -> int:
    return CASE * sum(map(shown_size, values))


def cost_of_encoding(values: Sequence[Any]) -> int:
    return JSON * sum(map(shown_size, values))


def cost_of_joining(values: Sequence[Any]) -> int:
    """Return the cost of a joined list, whose texts are not shown as those of a list. A text is one of characters."""
    listed, *separators = values
    items = listed if isinstance(listed, list | tuple | str) else [listed]
    return sum(map(shown_size, items)) + len(items) * sum(map(shown_size, separators))


def cost_of_trimming(values: Sequence[Any]) -> int:
    """Return the cost of a text of which each character is looked for among those to be removed."""
    text, *removed = values
    return CASE * shown_size(text) * (1 + sum(map(shown_size, removed)))


def cost_of_replacing(values: Sequence[Any]) -> int:
    """Return the cost of replacing each occurrence of a text."""
    text, old, new, *_ = (*values, "", "")
    # Counting reads the text, so it is left out if the text alone exceeds the budget.
    found = str(text).count(str(old)) if shown_size(text) <= MAX_WORK else 0
    return shown_size(text) + found * shown_size(new)


COSTS: Mapping[str, Cost] = {
    **dict.fromkeys(("capitalize", "lower", "string", "title", "truncate", "upper"), cost_of_copying),
    **dict.fromkeys(("count", "d", "default", "first", "last", "length"), cost_of_reading),
    "join": cost_of_joining,
    "replace": cost_of_replacing,
    "tojson": cost_of_encoding,
    "trim": cost_of_trimming,
}
"""The costs of Jinja's own filters by their arguments."""


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """The environment of one evaluation. It has no globals, and no filters or tests but those of the lists."""

    # The sandbox calls `call_binop` for these operators only. No others are allowed by the syntax.
    intercepted_binops = frozenset("+-%")

    def __init__(self) -> None:
        super().__init__(cache_size=0, optimized=False, finalize=self.show)
        self.budget = TemplateBudget()
        # Some of Jinja's make lists and texts of any length, such as `range` and `lipsum`.
        self.globals.clear()
        known = cast("Mapping[str, Filter]", TESTS)
        self.checks = {name: known[name] for name in ALLOWED_TESTS}
        self.tests = dict(self.checks)
        own = (self.map, self.list, self.reverse, self.selectattr, self.rejectattr)
        self.filters = {
            **{name: self.bounded(FILTERS[name], cost) for name, cost in COSTS.items()},
            **{each.__name__: each for each in own},
            READ: self.read,
            ITERATE: self.iterate,
        }

    def bounded(self, builtin: Filter, cost: Cost) -> Filter:
        """Return a filter that is charged before it runs."""
        own = 1 if hasattr(builtin, "jinja_pass_arg") else 0

        @wraps(builtin)
        def run(*args: Any, **kwargs: Any) -> Any:
            self.budget.charge(cost([*args[own:], *kwargs.values()]))
            found = builtin(*args, **kwargs)
            # Some filters return Markup, whose `+` escapes the other text: more characters than are charged.
            return str(found) if isinstance(found, str) and type(found) not in (str, TemplateMessage) else found

        return run

    def read(self, value: Any) -> Any:
        """Charge for a value that an expression names."""
        self.budget.charge(size_of(value))
        return value

    def show(self, value: Any) -> Any:
        """Charge for a value that is written into the result."""
        self.budget.charge(shown_size(value))
        return value

    def listed(self, value: Any) -> Sequence[Any]:
        """Return a list, charged. Raises TemplateRuntimeError for another value."""
        if isinstance(value, Undefined):
            return []
        if not isinstance(value, list | tuple):
            raise TemplateRuntimeError("a text or number is not a list")
        self.budget.charge(len(value))
        return value

    def iterate(self, value: Any, cost: int) -> ChargedList:
        return ChargedList(self.listed(value), cost, self.budget)

    def list(self, value: Any) -> Any:
        return [*self.listed(value)]

    def reverse(self, value: Any) -> Any:
        if isinstance(value, str):
            self.budget.charge(len(value))
            return value[::-1]
        return self.listed(value)[::-1]

    def map(self, value: Any, attribute: str) -> Any:
        return [self.getattr(each, attribute) for each in self.listed(value)]

    def selectattr(self, value: Any, attribute: str, test: str = "", *args: Any) -> Any:
        return self.choose(value, attribute, test, args, wanted=True)

    def rejectattr(self, value: Any, attribute: str, test: str = "", *args: Any) -> Any:
        return self.choose(value, attribute, test, args, wanted=False)

    def choose(self, value: Any, attribute: str, test: str, args: Sequence[Any], *, wanted: bool) -> Any:
        """Return the items whose attribute passes a test, or is not empty."""
        items = self.listed(value)
        self.budget.charge(sum(size_of(each) + cost_of_reading(args) for each in items))
        check = self.checks.get(test) if test else bool
        if check is None:
            raise TemplateRuntimeError(f"there is no test {test!r}")
        return [each for each in items if bool(check(self.getattr(each, attribute), *args)) is wanted]

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return a field of a message or of `loop`; undefined for anything else."""
        fields = FIELDS if isinstance(obj, TemplateMessage) else LOOP_FIELDS if isinstance(obj, LoopContext) else ()
        return super().getattr(obj, attribute) if attribute in fields else self.undefined(obj=obj, name=attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return an item of a list or text, or a field."""
        if isinstance(argument, str):
            return self.getattr(obj, argument)
        if isinstance(argument, SupportsIndex) and isinstance(obj, str | list | tuple):
            return super().getitem(obj, argument)
        return self.undefined(obj=obj, name=str(argument)[:80])

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Add texts and numbers. Jinja's `%` would format texts."""
        if isinstance(left, str) and isinstance(right, str) and operator == "+":
            self.budget.charge(len(left) + len(right))
            return left + right
        if isinstance(left, int | float) and isinstance(right, int | float):
            return super().call_binop(context, operator, left, right)
        raise TemplateRuntimeError(f"{operator!r} needs two numbers{', or two texts' if operator == '+' else ''}")
