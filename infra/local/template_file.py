"""Reader of a SAM template. Its errors are one line, because a template in `make run TOOLS=...` is the user's own."""

from pathlib import Path
from typing import Any

from infra.local.errors import LocalCloudError

SOURCES = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}
"""The properties that name a folder with code."""


def read_template(template: Path) -> dict[str, Any]:
    """Read and parse a template. Raises LocalCloudError if it has no valid YAML, or no resources."""
    if template.is_dir():
        raise LocalCloudError(f"{template} is a folder: name its template.yaml")
    if not template.is_file():
        raise LocalCloudError(f"there is no template {template}")
    try:
        document = parse_template(template, template.read_text(encoding="utf-8"))
    except OSError as error:
        raise LocalCloudError(f"cannot read {template}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise LocalCloudError(f"{template} is not UTF-8 (byte {error.start + 1}): save it as UTF-8") from error
    if not isinstance(document, dict) or not document.get("Resources"):
        raise LocalCloudError(f"{template} has no Resources")
    require_mapping(template, "Resources", document["Resources"])
    check_resources(template, document["Resources"])
    for name, parameter in require_mapping(template, "Parameters", document.get("Parameters", {})).items():
        require_mapping(template, f"Parameters.{name}", parameter)
    return document


def parse_template(template: Path, text: str) -> Any:
    """Parse a template like the translator's own reader, and faster where PyYAML has libyaml."""
    import yaml  # noqa: PLC0415 - only this function needs these
    from samtranslator.yaml_helper import intrinsics_multi_constructor  # noqa: PLC0415

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader.add_multi_constructor("!", intrinsics_multi_constructor)
    try:
        return yaml.load(text, loader)  # noqa: S506 - both are safe
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        problem = str(error.problem or error.context)
        advice = advise("".join(text.split("\n")[line - 1 : line]), problem)
        raise LocalCloudError(f"{template}, line {line}: not valid YAML ({problem}): {advice}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # For example a control character, a date without such a day, or thousands of brackets.
        raise LocalCloudError(f"{template}: not valid YAML ({str(error).splitlines()[0]})") from error


def advise(line: str, problem: str) -> str:
    """Return advice about the line at which the parser stopped; it finds a missing colon in the next line."""
    if "\t" in line:
        return "use spaces, not tabs"
    colon = problem.startswith(("mapping values", "could not find"))
    return f"check the indentation{', and the colon in the line before' if colon else ''}"


def require_mapping(template: Path, name: str, value: Any) -> dict[str, Any]:
    """Return a value of the template. Raises LocalCloudError unless it is a mapping."""
    if not isinstance(value, dict):
        raise LocalCloudError(f"{template}: {name} must be a mapping: check the indentation below it")
    return value


def check_resources(template: Path, resources: dict[str, Any]) -> None:
    """Raise LocalCloudError unless each resource has a type, and its properties are a mapping."""
    for name, resource in resources.items():
        kind = resource.get("Type") if isinstance(resource, dict) else None
        if not isinstance(kind, str):
            raise LocalCloudError(f"{template}: {name} has no Type: check the indentation below it")
        require_mapping(template, f"{name}.Properties", resource.get("Properties", {}))


def set_sources(template: Path, document: dict[str, Any], bucket: str) -> None:
    """Write the local folders of code as keys of objects in a bucket: the translator accepts code from S3 only.

    Raises LocalCloudError for code that is not in a folder.
    """
    shared = document.get("Globals") or {}
    for name, resource in document["Resources"].items():
        if source := SOURCES.get(resource["Type"]):
            properties = resource.setdefault("Properties", {})
            every = shared.get(resource["Type"].rpartition(":")[2]) if isinstance(shared, dict) else None
            folder = properties.get(source) or (every.get(source) if isinstance(every, dict) else None)
            if not isinstance(folder, str):
                raise LocalCloudError(f"{template}: {name} has no {source}: write the path of the folder with its code")
            properties[source] = f"s3://{bucket}/{folder}"
