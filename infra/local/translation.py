"""Translation of a SAM template to a CloudFormation template with AWS's own translator.

A translation takes two seconds of CPU time. The results are kept in `.stint/translations`, each under a hash of
everything it depends on: the parsed template after its changes, the region and the translator's version.
"""

import hashlib
import json
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from infra.local.engine import ROOT
from infra.local.errors import LocalCloudError

Change = Callable[[dict[str, Any]], None]

KEPT = ROOT / ".stint" / "translations"
MOST_KEPT = 40
"""Translations in the folder. The oldest ones are removed."""

# The translator accepts code from S3 only, so a local folder is written as the key of an object in this bucket.
_BUCKET = "local"
_SOURCES = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}


def translate(template: Path, region: str, *, change: Change | None = None) -> dict[str, Any]:
    """Translate a SAM template, after a change of its parsed form.

    Raises LocalCloudError with the translator's messages if it is not valid.
    """
    from samtranslator import __version__ as version  # noqa: PLC0415 - only this function needs it

    if not template.is_file():
        raise LocalCloudError(f"there is no template {template}")
    document = _parse(template.read_text())
    if change:
        change(document)
    for resource in document["Resources"].values():
        if source := _SOURCES.get(resource["Type"]):
            resource["Properties"][source] = f"s3://{_BUCKET}/{resource['Properties'][source]}"
    inputs = json.dumps([version, region, document], default=str)
    place = KEPT / f"{hashlib.sha256(inputs.encode()).hexdigest()}.json"
    with suppress(OSError, ValueError):
        kept: dict[str, Any] = json.loads(place.read_text())
        return kept
    text = json.dumps(_translate(template, document, region), default=str)
    with suppress(OSError):
        _keep(place, text)
    translated: dict[str, Any] = json.loads(text)
    return translated


def _parse(text: str) -> Any:
    """Parse a template like the translator's own reader, and faster where PyYAML has libyaml."""
    import yaml  # noqa: PLC0415 - only this function needs these
    from samtranslator.yaml_helper import intrinsics_multi_constructor  # noqa: PLC0415

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader.add_multi_constructor("!", intrinsics_multi_constructor)
    return yaml.load(text, loader)  # noqa: S506 - both are safe


def _translate(template: Path, document: dict[str, Any], region: str) -> dict[str, Any]:
    import boto3  # noqa: PLC0415 - takes half a second, together with the translator; only this function needs it
    from samtranslator.model.exceptions import InvalidDocumentException  # noqa: PLC0415
    from samtranslator.parser.parser import Parser  # noqa: PLC0415
    from samtranslator.translator.translator import Translator  # noqa: PLC0415

    logging.getLogger("samtranslator").setLevel(logging.ERROR)
    translator = Translator(managed_policy_map={}, sam_parser=Parser(), boto_session=boto3.Session(region_name=region))
    try:
        translated: dict[str, Any] = translator.translate(document, {})
    except InvalidDocumentException as error:
        causes = "; ".join(str(cause.message) for cause in error.causes)
        raise LocalCloudError(f"{template} is not valid: {causes}") from error
    return translated


def _keep(place: Path, text: str) -> None:
    """Write a translation in one step, because other processes may read it, and remove the oldest ones."""
    place.parent.mkdir(parents=True, exist_ok=True)
    written = place.with_suffix(f".{os.getpid()}")
    written.write_text(text)
    written.replace(place)
    kept = sorted(place.parent.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in kept[MOST_KEPT:]:
        old.unlink(missing_ok=True)


def source_folder(template: Path, content: dict[str, str]) -> Path:
    """Return the folder with the content of a translated function or layer."""
    return (template.parent / content["S3Key"]).resolve()


def open_routes(document: dict[str, Any]) -> None:
    """Open all routes of a parsed template, as `make build AUTH=none` does."""
    for resource in document["Resources"].values():
        resource.get("Properties", {}).pop("Auth", None)
        for event in resource.get("Properties", {}).get("Events", {}).values():
            event.get("Properties", {}).pop("Auth", None)
