"""Translation of a SAM template to a CloudFormation template with AWS's own translator."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infra.local.errors import LocalCloudError

Change = Callable[[dict[str, Any]], None]

# The translator accepts code from S3 only, so a local folder is written as the key of an object in this bucket.
_BUCKET = "local"
_SOURCES = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}


def translate(template: Path, region: str, *, change: Change | None = None) -> dict[str, Any]:
    """Translate a SAM template, after a change of its parsed form.

    Raises LocalCloudError with the translator's messages if it is not valid.
    """
    import boto3  # noqa: PLC0415 - takes half a second, together with the translator; only this function needs it
    from samtranslator.model.exceptions import InvalidDocumentException  # noqa: PLC0415
    from samtranslator.parser.parser import Parser  # noqa: PLC0415
    from samtranslator.translator.translator import Translator  # noqa: PLC0415
    from samtranslator.yaml_helper import yaml_parse  # noqa: PLC0415

    if not template.is_file():
        raise LocalCloudError(f"there is no template {template}")
    logging.getLogger("samtranslator").setLevel(logging.ERROR)
    document = yaml_parse(template.read_text())
    if change:
        change(document)
    for resource in document["Resources"].values():
        if source := _SOURCES.get(resource["Type"]):
            resource["Properties"][source] = f"s3://{_BUCKET}/{resource['Properties'][source]}"
    translator = Translator(managed_policy_map={}, sam_parser=Parser(), boto_session=boto3.Session(region_name=region))
    try:
        translated: dict[str, Any] = translator.translate(document, {})
    except InvalidDocumentException as error:
        causes = "; ".join(str(cause.message) for cause in error.causes)
        raise LocalCloudError(f"{template} is not valid: {causes}") from error
    return translated


def source_folder(template: Path, content: dict[str, str]) -> Path:
    """Return the folder with the content of a translated function or layer."""
    return (template.parent / content["S3Key"]).resolve()


def open_routes(document: dict[str, Any]) -> None:
    """Open all routes of a parsed template, as `make build AUTH=none` does."""
    for resource in document["Resources"].values():
        resource.get("Properties", {}).pop("Auth", None)
        for event in resource.get("Properties", {}).get("Events", {}).values():
            event.get("Properties", {}).pop("Auth", None)
