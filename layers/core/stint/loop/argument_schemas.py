"""The check of a call's arguments against the schema of its tool, before the tool gets them.

Tools of MCP servers and Lambda functions get what their schema permits, so that a server may rely on it. The schema
comes from the server: one that cannot be checked (it is invalid, too large, or has references that lead outside) is no
reason to refuse calls. The arguments come from the model: those that cannot be checked are refused.
"""

import json
from typing import TYPE_CHECKING, Any

from stint.loop.structured_output import describe
from stint.loop.undeclared_arguments import OPEN_PROVIDERS, read_object

if TYPE_CHECKING:
    from stint.json_schema.document import SchemaDocument
    from stint.loop.toolbox import ServerTool

FEWEST_STEPS, MOST_STEPS = 50_000, 500_000
"""Maximum steps for the check of small arguments, and of large ones: about 50 ms, and half a second."""

STEPS_PER_CHARACTER = 10


def refuse_mismatches(
    tool: "ServerTool", arguments: dict[str, Any], documents: "dict[str, SchemaDocument | None]"
) -> str | None:
    """Return the message for a model whose call does not run because of its arguments; None if it runs.

    `documents` has the schemas that were read before, by the tools' names. None is one that cannot be checked.
    """
    name = tool.signature.name
    if tool.toolgroup.provider_id not in OPEN_PROVIDERS:
        return None
    if name not in documents:
        documents[name] = read_document(tool)
    document = documents[name]
    problem = None if document is None else find_problem(document, arguments)
    return problem and (
        f"The tool {name!r} did not run, because its schema does not permit these arguments: {problem}. Correct them, "
        "and call it again."
    )


def read_document(tool: "ServerTool") -> "SchemaDocument | None":
    """Read a tool's schema. The args of the agent may have any value, and need not be declared."""
    from stint.json_schema.document import SchemaDocument  # noqa: PLC0415
    from stint.json_schema.errors import SchemaError  # noqa: PLC0415

    schema = tool.signature.parameters
    if tool.args:
        schema = schema | {"properties": {**read_object(schema, "properties"), **dict.fromkeys(tool.args, True)}}
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
