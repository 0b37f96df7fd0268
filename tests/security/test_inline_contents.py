"""No route but those of the console and of the API reference answers what a browser shows as a page of this origin.

A script that runs at this origin has the key of the console. So whatever callers, models and tools wrote is JSON,
an event, a text, or a file to save, and no browser may guess another type.
"""

from urllib.parse import quote

import httpx
import pytest
from tests.security.attacks import Attacks, Record
from tests.security.routes import Target, deployed, documented, october
from tests.security.stack import Stack

SCRIPT = "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
PAGE = f"<!doctype html><script>alert(1)</script>{SCRIPT}"
HARMLESS = {"application/json", "application/jsonl", "text/event-stream", "text/plain"}
"""Types that a browser shows as text, or not at all."""

REFERENCE = {"/docs", "/docs/{proxy+}", "/"}
FILES = {
    "page.html": PAGE,
    "image.svg": SCRIPT,
    "feed.xml": f"<?xml version='1.0'?><x:script xmlns:x='http://www.w3.org/1999/xhtml'>alert(1)</x:script>{SCRIPT}",
    "page.xhtml": f"<html xmlns='http://www.w3.org/1999/xhtml'>{SCRIPT}</html>",
    "text.txt": PAGE,
    'a"; filename="x.html': PAGE,
}


def problem_of(answer: httpx.Response) -> str:
    """Return why a browser might show an answer as a page, or ""."""
    media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if answer.headers.get("content-disposition", "").startswith("attachment"):
        harmful = "" if media_type == "application/octet-stream" else media_type
    else:
        harmful = "" if media_type in HARMLESS or not answer.content else media_type or "no type"
    if answer.headers.get("x-content-type-options") != "nosniff" and media_type != "application/json":
        return f"{answer.status_code} {media_type}, which a browser may guess"
    return f"{answer.status_code} {harmful}" if harmful else ""


@pytest.mark.parametrize("has_key", [True, False])
def test_no_route_answers_a_page(stack: Stack, has_key: bool, record_property: Record) -> None:
    attacks, value = Attacks(), quote(PAGE, safe="")
    headers = {"accept": "text/html,image/svg+xml,*/*", "idempotency-key": SCRIPT, "x-request-id": SCRIPT}
    targets = {*documented(), *october(), *deployed(stack.system)}
    with stack.client(stack.create_key("inline").key if has_key else "") as http:
        for target in sorted(each for each in targets if each.template not in REFERENCE):
            path = "/".join(value if part.startswith("{") else part for part in target.template.split("/"))
            for body in ({}, {"name": PAGE, "model": PAGE, "input": PAGE, "query": PAGE, PAGE: PAGE}):
                with attacks.attack(target.name):
                    answer = http.request(target.method, path, params={"after": PAGE}, json=body, headers=headers)
                if problem := problem_of(answer):
                    attacks.got_in.append(f"{target.name}: {problem}")

    attacks.record(record_property)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("purpose", ["assistants", "user_data"])
def test_a_file_is_saved_and_not_shown(stack: Stack, name: str, purpose: str, record_property: Record) -> None:
    attacks = Attacks()
    with stack.client(stack.create_key("inline").key) as http:
        file = (name, FILES[name].encode(), "text/html")
        file_id = http.post("/v1/files", data={"purpose": purpose}, files={"file": file}).json()["id"]
        container = http.post("/v1/containers", json={"name": PAGE, "file_ids": [file_id]}).json()["id"]
        [copy] = http.get(f"/v1/containers/{container}/files").json()["data"]
        store = http.post("/v1/vector_stores", json={"name": PAGE, "file_ids": [file_id]}).json()["id"]
        for target in (
            Target("GET", f"/v1/files/{file_id}/content"),
            Target("GET", f"/v1/openai/v1/files/{file_id}/content"),
            Target("GET", f"/v1/containers/{container}/files/{copy['id']}/content"),
            Target("GET", f"/v1/vector_stores/{store}/files/{file_id}/content"),
            Target("GET", f"/v1/vector_stores/{store}/files/{file_id}"),
        ):
            with attacks.attack(f"GET {target.template.split('/')[2]}"):
                answer = http.get(target.path, headers={"accept": "text/html"})
            if problem := problem_of(answer):
                attacks.got_in.append(f"{target.name}: {problem}")
            if target.path.endswith("/content") and "vector_stores" not in target.path:
                assert answer.content == FILES[name].encode()
                assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"

    attacks.record(record_property)
