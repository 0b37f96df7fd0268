"""Writes the OpenAPI document that GET /v1/openapi.json of `make run` answers with to `docs/openapi.json`."""

import json
import sys
import warnings
from pathlib import Path

from pydantic.warnings import UnsupportedFieldAttributeWarning

from stint.http.routes.inspection import describe_api_at

LOCAL = "http://127.0.0.1:8321"
DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def main() -> int:
    DOCUMENT.write_text(openapi_text())
    print(f"Wrote {DOCUMENT}.")
    return 0


def openapi_text() -> str:
    """The document as it is committed; it changes only where the API does."""
    # As in stint.http.app, where the reason is given.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    return json.dumps(describe_api_at(LOCAL), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
