"""Write the OpenAPI document, as returned by GET /v1/openapi.json of `make run`, to `docs/openapi.json`."""

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
    """Return the committed form of the document, which changes only with the API."""
    # See stint.http.app for the reason.
    warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)
    return json.dumps(describe_api_at(LOCAL), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())
