"""The user's own Lambda functions, which agents use as tools."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.local.engine import ROOT
from infra.local.errors import LocalCloudError
from infra.local.system import Function, System
from infra.local.template_file import require_mapping

TOOLS = ROOT / "docs" / "examples" / "tools" / "template.yaml"
SHOWN = 5
"""Names of functions that the welcome shows."""


def is_default(template: Path) -> bool:
    """Return whether the template is the repository's own example."""
    return template.resolve() == TOOLS


def describe_tools(template: Path, functions: Sequence[str]) -> list[str]:
    """Return the line of the welcome about the functions of the user's template, none about the example."""
    if is_default(template):
        return []
    more = f" and {len(functions) - SHOWN} more" if len(functions) > SHOWN else ""
    return [f"  tools  {', '.join(functions[:SHOWN]) or 'no functions'}{more} ({template})"]


def tool_functions(
    template: Path, translated: dict[str, Any], region: str, taken: Iterable[Function]
) -> tuple[Function, ...]:
    """Return the functions of the SAM template in `make run TOOLS=...`; it need not be built.

    Raises LocalCloudError for a function that is not in Python or not in a folder, or whose name is `taken`.
    """
    for name, resource in translated["Resources"].items():
        if resource["Type"] == "AWS::Lambda::Function":
            require_python(f"{template}: {name}", resource["Properties"])
            variables = resource["Properties"].get("Environment", {}).get("Variables", {})
            require_mapping(template, f"{name}.Environment.Variables", variables)
    try:
        functions = System(template, translated, region=region).functions
    except ValueError as error:
        raise LocalCloudError(f"{template}: a Timeout or MemorySize is not a number: {error}") from error
    names = {function.name for function in taken}
    for function in functions:
        if function.name in names:
            raise LocalCloudError(f"{template}: {function.logical_id}: Stint already has a function {function.name!r}")
    return functions


def require_python(where: str, properties: Mapping[str, Any]) -> None:
    """Raise LocalCloudError unless a translated function is one in Python, with its code in a folder."""
    runtime = str(properties.get("Runtime", properties.get("PackageType")))
    if not runtime.startswith("python"):
        raise LocalCloudError(f"{where}: the local cloud runs Python, not {runtime}")
    code = properties.get("Code")
    if not isinstance(code, dict) or "S3Key" not in code:
        raise LocalCloudError(f"{where}: its code must be in a folder: use AWS::Serverless::Function with CodeUri")
    if "Handler" not in properties:
        raise LocalCloudError(f"{where} has no Handler: write for example app.handler")
