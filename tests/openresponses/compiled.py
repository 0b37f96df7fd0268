"""Components of the document as functions, which accept a value in a hundredth of the time that jsonschema takes.

Each keyword of the document has a function here; another one fails when its component is compiled. A value that is not
accepted is checked by jsonschema, which finds the error (`schema.py`). `test_compiled.py` compares the two.
"""

import re
from collections.abc import Callable
from typing import Any

Accepts = Callable[[Any], bool]
Compile = Callable[[Any], Accepts]

NOTES = frozenset({"description", "title", "default", "discriminator", "example"})
KINDS: dict[str, Accepts] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: _is_integer(value),
}


def _is_integer(value: Any) -> bool:
    return KINDS["number"](value) and float(value).is_integer()


class Compiler:
    """Compile the schemas of a document. A component is compiled when a value is first checked against it."""

    def __init__(self, components: dict[str, Any]) -> None:
        self._components = components
        self._compiled: dict[str, Accepts] = {}

    def component(self, name: str) -> Accepts:
        """Return the function that accepts the values of a component."""
        if name not in self._compiled:
            self._compiled[name] = self.schema(self._components[name])
        return self._compiled[name]

    def schema(self, schema: dict[str, Any]) -> Accepts:
        """Return a function that accepts the values of a schema."""
        known = {key: schema[key] for key in schema if key not in NOTES and not key.startswith("x-")}
        if known.get("additionalProperties") in (True, {}):
            del known["additionalProperties"]
        if "additionalProperties" in known and "properties" in known:
            raise NotImplementedError("additionalProperties beside properties")
        return _all([getattr(self, f"_{key.strip('$').lower()}")(known[key]) for key in known])

    def _ref(self, reference: str) -> Accepts:
        name = reference.rsplit("/", 1)[1]
        return lambda value: self.component(name)(value)

    def _type(self, kinds: str | list[str]) -> Accepts:
        if isinstance(kinds, str):
            return KINDS[kinds]
        tests = [KINDS[kind] for kind in kinds]
        return lambda value: any(test(value) for test in tests)

    def _enum(self, values: list[str]) -> Accepts:
        if not all(isinstance(value, str) for value in values):
            raise NotImplementedError(f"enum {values}")
        return lambda value: isinstance(value, str) and value in values

    def _properties(self, schemas: dict[str, Any]) -> Accepts:
        # The type first: it tells the members of a union from each other.
        tests = [(key, self.schema(schemas[key])) for key in sorted(schemas, key=lambda key: key != "type")]
        return lambda value: not isinstance(value, dict) or all(test(value[key]) for key, test in tests if key in value)

    def _additionalproperties(self, schema: dict[str, Any]) -> Accepts:
        test = self.schema(schema)
        return lambda value: not isinstance(value, dict) or all(map(test, value.values()))

    def _required(self, keys: list[str]) -> Accepts:
        return lambda value: not isinstance(value, dict) or all(key in value for key in keys)

    def _items(self, schema: dict[str, Any]) -> Accepts:
        test = self.schema(schema)
        return lambda value: not isinstance(value, list) or all(map(test, value))

    def _allof(self, schemas: list[Any]) -> Accepts:
        return _all([self.schema(schema) for schema in schemas])

    def _anyof(self, schemas: list[Any]) -> Accepts:
        tests = [self.schema(schema) for schema in schemas]
        return lambda value: any(test(value) for test in tests)

    def _oneof(self, schemas: list[Any]) -> Accepts:
        tests = [self.schema(schema) for schema in schemas]
        return lambda value: sum(test(value) for test in tests) == 1

    def _not(self, schema: dict[str, Any]) -> Accepts:
        test = self.schema(schema)
        return lambda value: not test(value)

    def _minlength(self, least: int) -> Accepts:
        return lambda value: not isinstance(value, str) or len(value) >= least

    def _maxlength(self, most: int) -> Accepts:
        return lambda value: not isinstance(value, str) or len(value) <= most

    def _pattern(self, pattern: str) -> Accepts:
        find = re.compile(pattern).search
        return lambda value: not isinstance(value, str) or find(value) is not None

    def _minimum(self, least: float) -> Accepts:
        return lambda value: not KINDS["number"](value) or value >= least

    def _maximum(self, most: float) -> Accepts:
        return lambda value: not KINDS["number"](value) or value <= most

    def _minitems(self, least: int) -> Accepts:
        return lambda value: not isinstance(value, list) or len(value) >= least

    def _maxitems(self, most: int) -> Accepts:
        return lambda value: not isinstance(value, list) or len(value) <= most

    def _maxproperties(self, most: int) -> Accepts:
        return lambda value: not isinstance(value, dict) or len(value) <= most


def _all(tests: list[Accepts]) -> Accepts:
    if len(tests) == 1:
        return tests[0]
    return lambda value: all(test(value) for test in tests)
