"""Checks of values against a schema, within a budget of steps, and the keywords that apply subschemas.

Each function of a keyword applies its subschemas to a value or to its parts through `Evaluation.apply`, which charges
the budget, and joins their outcomes with that of the value:

  applies to                   joined by             most mismatches     examples
  the same value               `merge`               those of the value  allOf, $ref, then
  a part of the value          `add_part`            those of the value  properties, items
  the same value, as a test    `merge`, if it fits   1                   anyOf, oneOf, not, if

A part that a keyword was applied to counts as evaluated. `merge` also takes over which parts were evaluated, but only
of a subschema that the value satisfies; the `unevaluated` keywords come last (`document.rank_of`) and read the sum.
Loops that do not call `apply` for each entry charge for their entries themselves.
"""

from typing import Any

from stint.json_schema.assertions import ASSERTIONS, check_required
from stint.json_schema.check import ENTRIES_PER_STEP, Evaluation, Keyword, ValueCheck
from stint.json_schema.dialects import DRAFT_2020
from stint.json_schema.document import JsonSchema, SchemaDocument
from stint.json_schema.outcome import SchemaMismatch
from stint.regex.budget import Budget

MOST_MISMATCHES = 3
"""Mismatches that a message has. The check stops after them."""


def apply_all(check: ValueCheck, argument: Any) -> None:
    for schema in argument:
        check.outcome.merge(check.run.apply(*check.whole(schema)))


def apply_any(check: ValueCheck, argument: Any) -> None:
    """Check until one schema is satisfied, or check all if an `unevaluated` keyword needs what they evaluate."""
    satisfied = False
    for schema in argument:
        found = check.run.apply(schema, check.value, check.path, 1)
        if not found.mismatches:
            satisfied = True
            check.outcome.merge(found)
            # With an `unevaluated` keyword anywhere, each alternative that fits counts, not only the first one.
            if not check.run.tracks:
                return
    if not satisfied:
        check.fail("anyOf", argument)


def apply_one(check: ValueCheck, argument: Any) -> None:
    satisfied = []
    for schema in argument:
        found = check.run.apply(schema, check.value, check.path, 1)
        if not found.mismatches:
            satisfied.append(found)
        # Two are as wrong as ten.
        if len(satisfied) > 1:
            break
    if len(satisfied) == 1:
        check.outcome.merge(satisfied[0])
    else:
        check.fail("oneOf", argument)


def apply_not(check: ValueCheck, argument: Any) -> None:
    if not check.run.apply(argument, check.value, check.path, 1).mismatches:
        check.fail("not", argument)


def apply_if(check: ValueCheck, argument: Any) -> None:
    found = check.run.apply(argument, check.value, check.path, 1)
    check.run.budget.spend(len(found.evaluated) // ENTRIES_PER_STEP)
    if not found.mismatches:
        check.outcome.merge(found)
    branch = check.sibling("else" if found.mismatches else "then")
    if branch is not None:
        check.outcome.merge(check.run.apply(*check.whole(branch)))


def apply_dependent(check: ValueCheck, argument: Any) -> None:
    """Apply `dependentSchemas`, or `dependencies`, which can also hold lists of names."""
    if not isinstance(check.value, dict):
        return
    check.run.budget.spend(len(argument) // ENTRIES_PER_STEP)
    for name, dependent in argument.items():
        if name not in check.value:
            continue
        if isinstance(dependent, list):
            check_required(check, dependent)
        else:
            check.outcome.merge(check.run.apply(*check.whole(dependent)))


def apply_properties(check: ValueCheck, argument: Any) -> None:
    if isinstance(check.value, dict):
        check.run.budget.spend(min(len(argument), len(check.value)) // ENTRIES_PER_STEP)
        # The shorter of the two is walked: a small object against a large schema, or the reverse.
        for name in argument if len(argument) <= len(check.value) else check.value:
            if name in argument and name in check.value:
                check.outcome.add_part(check.run.apply(*check.part(argument[name], name)))


def apply_pattern_properties(check: ValueCheck, _: Any) -> None:
    if isinstance(check.value, dict):
        for pattern, schema in check.subschema.prepared["patternProperties"]:
            for name in check.value:
                if pattern.matches(name, check.run.budget):
                    check.outcome.add_part(check.run.apply(*check.part(schema, name)))


def apply_additional_properties(check: ValueCheck, argument: Any) -> None:
    if not isinstance(check.value, dict):
        return None
    listed = check.sibling("properties") or {}
    patterns = check.subschema.prepared.get("patternProperties", ())
    check.run.budget.spend(len(check.value) // ENTRIES_PER_STEP)
    for name in check.value:
        if name in listed or any(pattern.matches(name, check.run.budget) for pattern, _ in patterns):
            continue
        if argument is False:
            return check.fail("additionalProperties", argument)
        check.outcome.add_part(check.run.apply(*check.part(argument, name)))
    return None


def apply_property_names(check: ValueCheck, argument: Any) -> None:
    if isinstance(check.value, dict):
        for name in check.value:
            check.outcome.add_part(check.run.apply(argument, name, check.path, check.outcome.most))


def apply_prefix_items(check: ValueCheck, argument: Any) -> None:
    if isinstance(check.value, list):
        for index, schema in enumerate(argument[: len(check.value)]):
            check.outcome.add_part(check.run.apply(*check.part(schema, index)))


def apply_items(check: ValueCheck, argument: Any) -> None:
    if isinstance(argument, list):
        apply_prefix_items(check, argument)
    else:
        apply_from(check, len(check.sibling("prefixItems") or ()), "items", argument)


def apply_additional_items(check: ValueCheck, argument: Any) -> None:
    listed = check.sibling("items")
    if isinstance(listed, list):
        apply_from(check, len(listed), "additionalItems", argument)


def apply_from(check: ValueCheck, start: int, keyword: str, schema: JsonSchema) -> None:
    """Apply a schema to the items that start at an index."""
    if isinstance(check.value, list):
        if schema is False and start < len(check.value):
            return check.fail(keyword, schema)
        for index in range(start, len(check.value)):
            if check.outcome.is_full:
                return None
            check.outcome.add_part(check.run.apply(*check.part(schema, index)))
    return None


def apply_contains(check: ValueCheck, argument: Any) -> None:
    if not isinstance(check.value, list):
        return
    least, most = check.sibling("minContains"), check.sibling("maxContains")
    found = 0
    for index, item in enumerate(check.value):
        if not check.run.apply(argument, item, (check.path, index), 1).mismatches:
            found += 1
            if check.run.document.version >= DRAFT_2020:
                check.mark_evaluated(index)
    if found < (1 if least is None else least):
        check.fail("contains" if least is None else "minContains", argument if least is None else least)
    if most is not None and found > most:
        check.fail("maxContains", most)


def apply_unevaluated_properties(check: ValueCheck, argument: Any) -> None:
    if isinstance(check.value, dict):
        apply_unevaluated(check, "unevaluatedProperties", argument, check.value)


def apply_unevaluated_items(check: ValueCheck, argument: Any) -> None:
    if isinstance(check.value, list):
        apply_unevaluated(check, "unevaluatedItems", argument, range(len(check.value)))


def apply_unevaluated(check: ValueCheck, keyword: str, argument: JsonSchema, keys: Any) -> None:
    check.run.budget.spend(len(keys) // ENTRIES_PER_STEP)
    for key in keys:
        if key in check.outcome.evaluated:
            continue
        if argument is False:
            return check.fail(keyword, argument)
        check.outcome.add_part(check.run.apply(*check.part(argument, key)))
    return None


def follow(check: ValueCheck, _: Any) -> None:
    check.outcome.merge(check.run.apply(*check.whole(check.subschema.prepared["$ref"])))


def follow_dynamic(check: ValueCheck, reference: str) -> None:
    """Follow `$dynamicRef`: the outermost dynamic anchor with the same name wins."""
    target = check.subschema.prepared["$dynamicRef"]
    name = target.get("$dynamicAnchor") if isinstance(target, dict) else None
    if name and reference.endswith(f"#{name}"):
        target = outermost(check, name, target)
    check.outcome.merge(check.run.apply(*check.whole(target)))


def follow_recursive(check: ValueCheck, _: Any) -> None:
    """Follow `$recursiveRef` of 2019-09, a `$dynamicRef` with a single anchor without a name."""
    target = check.subschema.prepared["$recursiveRef"]
    if isinstance(target, dict) and target.get("$recursiveAnchor") is True:
        target = outermost(check, "", target)
    check.outcome.merge(check.run.apply(*check.whole(target)))


def outermost(check: ValueCheck, name: str, target: JsonSchema) -> JsonSchema:
    found = (resource.dynamic[name] for resource in check.run.scope if name in resource.dynamic)
    return next(found, target)


APPLICATORS: dict[str, Keyword] = {
    "$ref": follow,
    "$dynamicRef": follow_dynamic,
    "$recursiveRef": follow_recursive,
    "allOf": apply_all,
    "anyOf": apply_any,
    "oneOf": apply_one,
    "not": apply_not,
    "if": apply_if,
    "dependentSchemas": apply_dependent,
    "dependencies": apply_dependent,
    "properties": apply_properties,
    "patternProperties": apply_pattern_properties,
    "additionalProperties": apply_additional_properties,
    "propertyNames": apply_property_names,
    "prefixItems": apply_prefix_items,
    "items": apply_items,
    "additionalItems": apply_additional_items,
    "contains": apply_contains,
    "unevaluatedItems": apply_unevaluated_items,
    "unevaluatedProperties": apply_unevaluated_properties,
}
KEYWORDS = ASSERTIONS | APPLICATORS


def find_mismatches(document: SchemaDocument, value: Any, budget: Budget) -> list[SchemaMismatch]:
    """Check a JSON value against a schema, and return the first mismatches, at most three.

    Raises:
        StepLimitExceeded: the value and the schema together cause too much work.
        RecursionError: they are nested too deeply.
    """
    return Evaluation(document, budget, KEYWORDS).apply(document.root, value, None, MOST_MISMATCHES).mismatches
