"""Search for a credential in all responses, logs and stored data, independent of the code that removes it."""

import base64
import binascii
import io
import re
import zlib
from contextlib import suppress
from typing import Any, Self
from urllib.parse import unquote_plus

from tests.api.app_fixture import AppFixture
from tests.store.tenant_records import list_blobs, read_records

from stint.observability import make_logger

BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}")


def leaks(text: str, key: str) -> bool:
    """Return whether a text contains a credential: in plain, escaped, or anywhere in base64."""
    seen = {text, unquote_plus(text), text.replace("\\/", "/")}
    return any(key in each for each in seen) or any(key.encode() in each for one in seen for each in decoded(one))


def decoded(text: str) -> list[bytes]:
    """Return all possible base64 contents of a text, decoded from each of four offsets."""
    found = []
    for run in set(BASE64.findall(text)):
        plain = run.translate(str.maketrans("-_", "+/"))
        for start in range(4):
            part = plain[start:]
            try:
                found.append(base64.b64decode(part[: len(part) - (len(part) % 4 == 1)] + "=="))
            except binascii.Error:
                continue
    return found


def stored(app_fixture: AppFixture, *, but: str = "#registry") -> str:
    """Return all stored data of the tenant, decompressed, except partitions whose names end with `but`."""
    own = read_records(app_fixture.dynamodb, app_fixture.settings.table, app_fixture.tenant)
    values = [value for item in own if not item["pk"]["S"].endswith(but) for value in item.values()]
    texts = [text_of(next(iter(typed.values()))) for typed in values]
    for key in list_blobs(app_fixture.s3, app_fixture.settings.bucket, app_fixture.tenant):
        if "/registry/" not in key:
            texts.append(text_of(app_fixture.s3.get_object(Bucket=app_fixture.settings.bucket, Key=key)["Body"].read()))
    return "\n".join(texts)


def text_of(value: Any) -> str:
    if not isinstance(value, bytes):
        return str(value)
    with suppress(zlib.error):
        value = zlib.decompress(value)
    return str(value.decode("latin-1"))


class Watcher:
    """Recorder of all output: responses passed to it, log lines, and stored data."""

    def __init__(self, app_fixture: AppFixture) -> None:
        self.app_fixture = app_fixture
        self.answers: list[str] = []
        self.lines = io.StringIO()
        self.handler: Any = make_logger().registered_handler

    def __enter__(self) -> Self:
        self.before = self.handler.setStream(self.lines)
        return self

    def __exit__(self, *_: object) -> None:
        self.handler.setStream(self.before)

    def __call__(self, answer: Any) -> Any:
        """Record a response, and return it."""
        self.answers.append(f"{answer.headers}\n{answer.text}")
        return answer

    def assert_clean(self, *keys: str, stores: bool = True) -> None:
        """Assert that the keys are not found. If `stores` is false, the table may contain them."""
        places = {"answer": "\n".join(self.answers), "log": self.lines.getvalue()}
        if stores:
            places["table"] = stored(self.app_fixture)
        assert '"message":"Request"' in places["log"]
        for key in keys:
            for place, text in places.items():
                assert not leaks(text, key), f"{key} is in the {place}: {around(text, key)}"


def around(text: str, key: str) -> str:
    at = text.find(key)
    return text[max(at - 200, 0) : at + 200] if at >= 0 else "encoded"
