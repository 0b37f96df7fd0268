"""The check of a call's arguments against the schema of its tool, before the tool gets them.

Tools of MCP servers and Lambda functions get what their schema permits, so that a server may rely on it. The schema
comes from the server: one that cannot be checked (it is invalid, too large, or has references that lead outside) is no
reason to refuse calls. The arguments come from the model: those that cannot be checked are refused.
"""

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from stint.domain.inference import ToolSignature
from stint.loop.structured_output import describe
from stint.loop.undeclared_arguments import OPEN_PROVIDERS, read_object

if TYPE_CHECKING:
    from stint.json_schema.document import SchemaDocument

FEWEST_STEPS, MOST_STEPS = 50_000, 500_000
"""Maximum steps for the check of small arguments, and of large ones: about 50 ms, and half a second."""

STEPS_PER_CHARACTER = 10


Documents = dict[str, "SchemaDocument | None"]
"""The schemas that were read before, by the tools' names. None is one that cannot be checked."""


def refuse_mismatches(
    tool: ToolSignature, provider_id: str, arguments: dict[str, Any], fixed: Collection[str], documents: Documents
) -> str | None:
    """Return the message for a model whose call does not run because of its arguments; None if it runs.

    `fixed` has the names of those that come from the agent. They may have any value, and need not be declared.
    """
    if provider_id not in OPEN_PROVIDERS:
        return None
    name = tool.name
    if name not in documents:
        documents[name] = read_document(tool.parameters, fixed)
    document = documents[name]
    problem = None if document is None else find_problem(document, arguments)
    return problem and (
        f"The tool {name!r} did not run, because its schema does not permit these arguments: {problem}. Correct them, "
        "and call it again."
    )


def read_document(schema: dict[str, Any], fixed: Collection[str]) -> "SchemaDocument | None":
    from stint.json_schema.document import SchemaDocument  # noqa: PLC0415
    from stint.json_schema.errors import SchemaError  # noqa: PLC0415

    if fixed:
        schema = schema | {"properties": {**read_object(schema, "properties"), **dict.fromkeys(fixed, True)}}
    try:
        return SchemaDocument(schema)
    except SchemaError:
        return None


def find_problem(document: "SchemaDocument", arguments: dict[str, Any]) -> str | None:
    from stint.json_schema.evaluation import find_mismatches  # noqa: PLC0415
    from stint.regex.budget import Budget, StepLimitExceeded  # noqa: PLC0415

    steps = FEWEST_STEPS + STEPS_PER_CHARACTER * len(json.dumps(arguments))
    try:
        mismatches = find_mismatches(document, arguments, Budget(min(steps, MOST_STEPS)))
    except (RecursionError, StepLimitExceeded):
        return "they are too large or nested too deeply to be checked"
    return "; ".join(map(describe, mismatches)) or None
