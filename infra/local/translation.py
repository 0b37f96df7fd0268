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
from infra.local.template_file import read_template, set_sources

Change = Callable[[dict[str, Any]], None]

KEPT = ROOT / ".stint" / "translations"
MOST_KEPT = 40
"""Translations in the folder. The oldest ones are removed."""

_BUCKET = "local"


def translate(template: Path, region: str, *, change: Change | None = None) -> dict[str, Any]:
    """Translate a SAM template, after a change of its parsed form.

    Raises LocalCloudError if it is not valid, with the translator's messages.
    """
    from samtranslator import __version__ as version  # noqa: PLC0415 - only this function needs it

    document = read_template(template)
    if change:
        change(document)
    set_sources(template, document, _BUCKET)
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
