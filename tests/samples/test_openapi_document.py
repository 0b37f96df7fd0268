import json
import re

from infra.scripts.openapi import DOCUMENT, openapi_text


def test_the_committed_document_is_current() -> None:
    assert DOCUMENT.read_text() == openapi_text(), "the API has changed: run `make openapi`"


def test_every_reference_leads_to_a_schema() -> None:
    text = DOCUMENT.read_text()

    named = set(re.findall(r'"#/components/schemas/([^"]+)"', text))

    assert named
    assert named <= set(json.loads(text)["components"]["schemas"])
