"""A JSON schema that is checked and prepared: its subschemas, their references, and the work they cause.

Nothing is fetched: references lead to other places in the same schema.

A schema comes from a caller, so everything that it could cost later is bounded here, before it is used:

  step      does                                                     refused
  read      walks the schema, and checks the form of each keyword    malformed keywords, too many parts
  prepare   compiles patterns, and makes keys of literals            patterns that cannot be matched in linear time
  resolve   follows each reference, and reads places that no         references that lead outside or nowhere
            keyword contains
  weigh     counts the keywords that apply to one value              chains of references that loop, are deeper than 50,
                                                                     or apply more than 20,000 keywords to one value

The first three share a budget of MOST_STEPS. Weighing is what no count of parts replaces: a chain in which each link
refers to the next one twice has few parts, and doubles the work at each link. Only what applies to the same value is
weighed; what applies to its parts is bounded by the value, and by the budget of its check.

Subschemas are known by the `id` of their dicts, since the document holds the schema.

docs/decisions.md, entry 44, has the reasons.
"""

from collections.abc import Iterator
from typing import Any

from stint.dataclasses import dataclass, field
from stint.json_schema.dialects import DRAFT_4, DRAFT_7, is_keyword, version_of
from stint.json_schema.errors import SchemaError
from stint.json_schema.forms import FORMS, LIST_KEYWORDS, MAP_KEYWORDS, REFERENCES, SCHEMA_KEYWORDS
from stint.json_schema.literals import key_of
from stint.json_schema.paths import Path, shorten, write_path
from stint.json_schema.references import Resource, join, look_up
from stint.regex.budget import Budget, StepLimitExceeded
from stint.regex.patterns import Patterns

MOST_STEPS = 150_000
"""Steps for the check of a schema, about a quarter of a second. A schema of 20,000 properties needs fewer."""
MOST_KEYWORDS_PER_VALUE = 20_000
"""Maximum number of keywords that apply to one value. References can double it at each link of a chain."""
DEEPEST = 50
"""Maximum depth of nested schemas or chained references that apply to the same value."""

JsonSchema = dict[str, Any] | bool


@dataclass(slots=True, eq=False)
class Subschema:
    """A subschema. `prepared` has the values of the keywords that need preparation."""

    schema: dict[str, Any]
    """The subschema as it was written."""
    resource: Resource
    path: Path
    keywords: list[str]
    prepared: dict[str, Any] = field(default_factory=dict)


class SchemaDocument:
    """A schema to check values against."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Check and prepare a schema.

        Raises:
            SchemaError: it is invalid in its version of JSON Schema, has a reference that leads outside or nowhere,
                recurses without end, uses an unsupported regular expression, or is too large.
        """
        self.root = schema
        self.version = version_of(schema.get("$schema"))
        self.subschemas: dict[int, Subschema] = {}
        self.resources: dict[str, Resource] = {}
        self.tracks_evaluated = False
        """Whether there are keywords for unevaluated parts."""
        self._budget = Budget(MOST_STEPS)
        self._patterns: dict[str, Patterns] = {}
        self._costs: dict[int, int] = {}
        try:
            self._read(schema, Resource(schema, ""), None)
            for subschema in self._resolve_all():
                self._weigh(subschema)
        except StepLimitExceeded:
            raise SchemaError("it has too many parts") from None
        except RecursionError:
            raise SchemaError("its parts or references are nested too deep") from None

    def _read(self, schema: JsonSchema, resource: Resource, path: Path) -> None:
        """Check a schema and what is inside it."""
        if isinstance(schema, bool) or id(schema) in self.subschemas:
            return
        self._budget.spend(5 + len(schema))
        keywords = self._keywords_of(schema, path)
        if path is not None and schema.get("$schema", self.root.get("$schema")) != self.root.get("$schema"):
            raise SchemaError(
                f"at {write_path((path, '$schema'))}: a subschema must have the same version as the whole schema"
            )
        resource = self._enter(schema, keywords, resource)
        subschema = Subschema(schema, resource, path, keywords)
        self.subschemas[id(schema)] = subschema
        for keyword in keywords:
            self._prepare(subschema, keyword)
        for part, place in parts_of(schema, keywords, path):
            self._read(part, resource, place)

    def _keywords_of(self, schema: dict[str, Any], path: Path) -> list[str]:
        """Return the keywords that have a meaning, after a check of their values."""
        keywords = [name for name in schema if name in FORMS and is_keyword(name, self.version)]
        # Until draft 7, `$ref` replaces its siblings.
        if "$ref" in keywords and self.version <= DRAFT_7:
            keywords = ["$ref"]
        for keyword in keywords:
            is_right, problem = FORMS[keyword]
            if not is_right(schema[keyword], self.version):
                where = write_path((path, keyword))
                raise SchemaError(f"at {where}: {shorten(repr(schema[keyword])[:1000])} is {problem}")
        # `unevaluated` keywords need the outcome of all others. Assertions are cheap, and may make the others
        # unnecessary.
        return sorted(keywords, key=rank_of)

    def _enter(self, schema: dict[str, Any], keywords: list[str], resource: Resource) -> Resource:
        """Record the ids and anchors of a schema, and return the resource that its references are relative to."""
        identifier = schema.get("id" if self.version == DRAFT_4 else "$id")
        if isinstance(identifier, str) and keywords != ["$ref"]:
            if identifier.startswith("#"):
                resource.anchors.setdefault(identifier[1:], schema)
            else:
                uri = join(resource.uri, identifier).partition("#")[0]
                resource = Resource(schema, uri)
                self.resources.setdefault(uri, resource)
        if "$anchor" in keywords:
            resource.anchors.setdefault(schema["$anchor"], schema)
        if "$dynamicAnchor" in keywords:
            resource.anchors.setdefault(schema["$dynamicAnchor"], schema)
            resource.dynamic.setdefault(schema["$dynamicAnchor"], schema)
        if schema.get("$recursiveAnchor") is True and schema is resource.root:
            resource.dynamic.setdefault("", schema)
        return resource

    def _prepare(self, subschema: Subschema, keyword: str) -> None:
        argument = subschema.schema[keyword]
        match keyword:
            case "pattern":
                subschema.prepared[keyword] = self._compile(argument, (subschema.path, keyword))
            case "patternProperties":
                subschema.prepared[keyword] = [
                    (self._compile(pattern, (subschema.path, keyword)), part) for pattern, part in argument.items()
                ]
            case "enum":
                subschema.prepared[keyword] = {key_of(each, self._budget) for each in argument}
            case "const":
                subschema.prepared[keyword] = {key_of(argument, self._budget)}
            case "unevaluatedItems" | "unevaluatedProperties":
                self.tracks_evaluated = True

    def _compile(self, pattern: str, path: Path) -> Patterns:
        if pattern not in self._patterns:
            try:
                found = Patterns([pattern])
            except ValueError as error:
                where = f"{write_path(path)}: the regular expression {shorten(pattern)!r}"
                raise SchemaError(f"at {where} is not supported: {error.args[0]}") from None
            # After the compilation, whose size is bounded by the pattern's own limits.
            self._budget.spend(20 + len(pattern) + 3 * found.size)
            self._patterns[pattern] = found
        return self._patterns[pattern]

    def _resolve_all(self) -> list[Subschema]:
        """Resolve all references, and return all subschemas. A reference may lead outside of any keyword."""
        resolved: list[Subschema] = []
        while len(resolved) < len(self.subschemas):
            for subschema in list(self.subschemas.values())[len(resolved) :]:
                for keyword in REFERENCES:
                    if keyword in subschema.keywords:
                        subschema.prepared[keyword] = self._resolve(subschema, keyword)
                resolved.append(subschema)
        return resolved

    def _resolve(self, subschema: Subschema, keyword: str) -> JsonSchema:
        reference, resource = subschema.schema[keyword], subschema.resource
        self._budget.spend(5 + len(reference) // 10)
        where = f"at {write_path((subschema.path, keyword))}: {shorten(reference)!r}"
        base, _, fragment = reference.partition("#")
        target = self.resources.get(join(resource.uri, base)) if base else resource
        if target is None:
            raise SchemaError(f"{where} refers outside the schema: put the subschema under $defs")
        found = look_up(fragment, target)
        if not isinstance(found, dict | bool):
            raise SchemaError(f"{where} refers to nothing in the schema, or to a value that is not a schema")
        self._read(found, target, (subschema.path, keyword))
        return found

    def _weigh(self, subschema: Subschema, depth: int = 0) -> int:
        """Count the keywords that apply to one value, including those that references lead to.

        Raises:
            SchemaError: there are too many, or they form a circle.
        """
        schema = subschema.schema
        cost = self._costs.get(id(schema))
        if depth > DEEPEST:
            raise SchemaError(
                f"at {write_path(subschema.path)}: its references form a chain of more than {DEEPEST} steps"
            )
        if cost == 0:
            raise SchemaError(f"at {write_path(subschema.path)}: its references form a loop")
        if cost is None:
            # A mark that it is being weighed: who meets it again has found a loop.
            self._costs[id(schema)] = 0
            cost = 1 + len(subschema.keywords)
            for part in self._applied_in_place(subschema):
                cost += 1 if isinstance(part, bool) else self._weigh(self.subschemas[id(part)], depth + 1)
            if cost > MOST_KEYWORDS_PER_VALUE:
                raise SchemaError(
                    f"at {write_path(subschema.path)}: one value would be checked with more than "
                    f"{MOST_KEYWORDS_PER_VALUE} keywords: simplify its alternatives or references"
                )
            self._costs[id(schema)] = cost
        return cost

    def _applied_in_place(self, subschema: Subschema) -> Iterator[JsonSchema]:
        """Yield the subschemas that apply to the same value as a schema."""
        for keyword in subschema.keywords:
            argument = subschema.schema[keyword]
            match keyword:
                case "allOf" | "anyOf" | "oneOf":
                    yield from argument
                case "not" | "if" | "then" | "else":
                    yield argument
                case "dependentSchemas" | "dependencies":
                    yield from (part for part in argument.values() if not isinstance(part, list))
                case "$ref" | "$dynamicRef" | "$recursiveRef":
                    yield subschema.prepared[keyword]


def parts_of(schema: dict[str, Any], keywords: list[str], path: Path) -> Iterator[tuple[JsonSchema, Path]]:
    """Yield the subschemas in the keywords of a schema."""
    for keyword in keywords:
        argument, place = schema[keyword], (path, keyword)
        if keyword in LIST_KEYWORDS or (keyword == "items" and isinstance(argument, list)):
            yield from ((part, (place, index)) for index, part in enumerate(argument))
        elif keyword in MAP_KEYWORDS or keyword == "dependencies":
            yield from ((part, (place, name)) for name, part in argument.items() if not isinstance(part, list))
        elif keyword in SCHEMA_KEYWORDS:
            yield argument, place


def rank_of(keyword: str) -> int:
    """Return the rank of a keyword: assertions come first, `unevaluated` keywords last."""
    if keyword.startswith("unevaluated"):
        return 2
    return int(keyword in (*SCHEMA_KEYWORDS, *LIST_KEYWORDS, *MAP_KEYWORDS, *REFERENCES, "dependencies"))
