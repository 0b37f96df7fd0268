"""The user's own Lambda functions, which agents use as tools."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from infra.local.engine import ROOT
from infra.local.errors import LocalCloudError
from infra.local.system import Function, System

TOOLS = ROOT / "docs" / "examples" / "tools" / "template.yaml"


def tool_functions(
    template: Path, translated: dict[str, Any], region: str, taken: Iterable[Function]
) -> tuple[Function, ...]:
    """Return the functions of the SAM template in `make run TOOLS=...`; it need not be built.

    Raises LocalCloudError for a function that is not in Python, or whose name is `taken`.
    """
    functions = System(template, translated, region=region).functions
    names = {function.name for function in taken}
    for function in functions:
        properties = translated["Resources"][function.logical_id]["Properties"]
        runtime = str(properties.get("Runtime", properties.get("PackageType")))
        if not runtime.startswith("python"):
            raise LocalCloudError(f"{template}: {function.logical_id}: the local cloud runs Python, not {runtime}")
        if function.name in names:
            raise LocalCloudError(f"{template}: {function.logical_id}: Stint already has a function {function.name!r}")
    return functions
