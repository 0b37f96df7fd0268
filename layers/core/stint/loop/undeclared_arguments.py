"""The arguments that a model may set: those that a tool declares.

Everything else belongs to the configuration: the args of an agent or a turn may set it, and callers who run a tool
themselves. A built-in tool never had other arguments, so it runs without them, and its result says so. A call of any
other tool is refused, because without them it could do something else: a tool that does not get `dry_run` acts.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from stint.dataclasses import replace
from stint.domain.content import TextContentItem, items_of
from stint.domain.inference import ToolSignature
from stint.tools.declared_properties import declared_properties
from stint.tools.port import ToolOutcome

HTTP_ENDPOINTS = "remote-execution"
OPEN_PROVIDERS = frozenset({"model-context-protocol", "lambda-function"})
"""The providers whose tools get all arguments that their schema does not forbid, as JSON Schema has it."""

COMPOSITIONS = frozenset({"allOf", "anyOf", "oneOf", "if", "dependentSchemas", "$ref", "$dynamicRef"})
"""Keywords of which `unevaluatedProperties` depends, so that only the tool itself can tell what it forbids."""

MOST_STEPS = 50_000
"""Maximum steps for the comparison of one name with patterns."""

NOT_BUILT_IN = OPEN_PROVIDERS | {HTTP_ENDPOINTS}
MOST_SHOWN = 5
LONGEST_SHOWN = 100


def find_undeclared(tool: ToolSignature, provider_id: str, names: Iterable[str]) -> list[str]:
    """Return those of some arguments that a model may not set.

    A tool has the properties of its schema. Further ones are possible if the schema says so, for tools of
    OPEN_PROVIDERS unless it says otherwise, and for HTTP endpoints without properties.
    """
    schema = tool.parameters
    open_provider = provider_id in OPEN_PROVIDERS
    # A property whose schema is `false` is forbidden, so it counts as undeclared.
    properties = read_object(schema, "properties") if open_provider else declared_properties(schema)
    others = [name for name in names if properties.get(name, False) is False]
    is_open = open_provider or (provider_id == HTTP_ENDPOINTS and not properties)
    if not others or not is_closed(schema, default=not is_open):
        return []
    patterns = read_object(schema, "patternProperties")
    return [name for name in others if not (patterns and matches(patterns, name))]


def is_closed(schema: Mapping[str, Any], *, default: bool) -> bool:
    """Return whether a schema forbids further properties."""
    if "additionalProperties" in schema:
        return schema["additionalProperties"] is False
    if "unevaluatedProperties" in schema:
        return schema["unevaluatedProperties"] is False and COMPOSITIONS.isdisjoint(schema)
    return default


def read_object(schema: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    """Return the object of a keyword. A server's schema may have any form."""
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def matches(patterns: Mapping[str, Any], name: str) -> bool:
    """Return whether a name matches a pattern. One that cannot be evaluated matches nothing."""
    from stint.json_schema.document import SchemaDocument  # noqa: PLC0415 - few tools have patterns
    from stint.json_schema.errors import SchemaError  # noqa: PLC0415
    from stint.json_schema.evaluation import find_mismatches  # noqa: PLC0415
    from stint.regex.budget import Budget, StepLimitExceeded  # noqa: PLC0415

    permitted = {"patternProperties": dict.fromkeys(patterns, True), "additionalProperties": False}
    try:
        return not find_mismatches(SchemaDocument(permitted), {name: None}, Budget(MOST_STEPS))
    except (SchemaError, StepLimitExceeded, RecursionError):
        return False


def refuse_undeclared(tool: ToolSignature, provider_id: str, names: list[str]) -> str | None:
    """Return the message for a model whose call does not run because of undeclared arguments; None if it runs."""
    if not names or provider_id not in NOT_BUILT_IN:
        return None
    return (
        f"The tool {tool.name!r} did not run, because it does not have these arguments: {shorten(names)}. "
        f"{describe_declared(tool)} Call it again without the others."
    )


def note_undeclared(outcome: ToolOutcome, tool: ToolSignature, names: list[str]) -> ToolOutcome:
    """Return the outcome of a call that ran without some arguments, with a note for the model at its end."""
    note = f"[These arguments had no effect: {shorten(names)}. {describe_declared(tool)}]"
    return replace(outcome, content=[*items_of(outcome.content), TextContentItem(text=note)])


def shorten(names: list[str]) -> str:
    return ", ".join(repr(name[:LONGEST_SHOWN]) for name in names[:MOST_SHOWN])


def describe_declared(tool: ToolSignature) -> str:
    return f"Its arguments are: {', '.join(declared_properties(tool.parameters)) or 'none'}."
