"""Write the OpenAPI document to `docs/openapi.json`. GET /v1/openapi.json returns it with its own URL and models."""

import json
import sys
import warnings
from pathlib import Path

from infra.openapi.document import describe_api
from pydantic.warnings import UnsupportedFieldAttributeWarning

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def main() -> int:
    DOCUMENT.write_text(openapi_text())
    print(f"Wrote {DOCUMENT}.")
    return 0


def openapi_text() -> str:
    """Return the committed form of the document, which changes only with the API."""
    # See stint.http.app for the reason.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    return json.dumps(describe_api(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
