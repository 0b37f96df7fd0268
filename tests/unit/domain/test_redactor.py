import base64
import html
import json
import random
import re
import string
from collections.abc import Callable
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.domain.redaction import SEARCHED, Matcher, Redactor, StreamRedactor, replace_spans

KEY = "sk-ab/c+D ef'gh\"ij&k\\=é~"
SECRETS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=8, max_size=24)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)

WAYS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": json.dumps,
    "JSON, unescaped": lambda text: json.dumps(text, ensure_ascii=False),
    "JSON with escaped slashes": lambda text: json.dumps(text).replace("/", "\\/"),
    "JSON in JSON": lambda text: json.dumps({"body": json.dumps({"key": text})}),
    "URL": lambda text: quote(text, safe=""),
    "path of a URL": quote,
    "URL in JavaScript": lambda text: quote(text, safe="!'()*~"),
    "URL in small letters": lambda text: re.sub("%..", lambda found: found[0].lower(), quote(text, safe="")),
    "form": lambda text: urlencode({"key": text}),
    "query": quote_plus,
    "HTML": html.escape,
}
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {"standard": base64.b64encode, "url-safe": base64.urlsafe_b64encode}


@pytest.mark.parametrize("way", WAYS)
def test_a_secret_is_replaced_in_each_form(way: str) -> None:
    text = f"before {WAYS[way](KEY)} after"

    redacted = Redactor([KEY]).text(text)

    assert "***" in redacted
    assert redacted.startswith("before ")
    assert redacted.endswith(" after")
    assert "ef" not in redacted.removeprefix("before").removesuffix("after")


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("before", ["", "u", "us", "use", "user:", "Basic user:"])
@pytest.mark.parametrize("key", [KEY, "12345678", "abc" * 11, "\xff\xfe>>>???" * 3])
def test_a_secret_in_base64_is_replaced_wherever_it_begins(encoding: str, before: str, key: str) -> None:
    whole = ENCODINGS[encoding](f"{before}{key}, and more".encode()).decode()

    for text in (whole, quote(whole, safe=""), json.dumps(whole).replace("/", "\\/")):
        assert "***" in Redactor([key]).text(f"<{text}>"), text


RUNS: dict[str, Callable[[str], str]] = {
    "every character in percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "every character in small percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "every character escaped": lambda text: "".join(f"\\u{ord(character):04x}" for character in text),
    "escaped twice": lambda text: "".join(f"\\\\u{ord(character):04X}" for character in text),
    "base64 in lines": lambda text: base64.encodebytes(b"x" * 50 + text.encode() + b"y" * 90).decode(),
    "base64 in lines of a mail": lambda text: (
        base64.encodebytes(b"x" * 50 + text.encode()).decode().replace("\n", "\r\n")
    ),
    "base64 in lines in JSON": lambda text: json.dumps(base64.encodebytes(b"x" * 50 + text.encode()).decode()),
    "UTF-16": lambda text: text.encode("utf-16-le").decode("latin-1"),
    "UTF-16, big-endian": lambda text: text.encode("utf-16-be").decode("latin-1"),
}


@pytest.mark.parametrize("way", RUNS)
def test_a_secret_is_replaced_in_a_run_that_is_encoded_as_a_whole(way: str) -> None:
    text = f"before {RUNS[way]('Zx-cookieVALUE/abc123')} after"
    other = f"before {RUNS[way]('Zx-otherVALUE/abc1234')} after"

    redacted = Redactor(["Zx-cookieVALUE/abc123"]).text(text)

    assert redacted.startswith("before ")
    assert "***" in redacted
    assert redacted.endswith(" after")
    assert Redactor(["Zx-cookieVALUE/abc123"]).text(other) == other


@given(secret=SECRETS, before=TEXTS, after=TEXTS, way=st.sampled_from(sorted(WAYS)))
def test_no_secret_is_left_in_any_form(secret: str, before: str, after: str, way: str) -> None:
    redacted = Redactor([secret]).text(before + WAYS[way](secret) + after)

    assert secret not in redacted
    assert WAYS[way](secret).strip('"') not in redacted


@pytest.mark.parametrize("short", ["x", "none", "ollama", "EMPTY", "1234567"])
def test_a_short_secret_is_never_replaced(short: str) -> None:
    text = f"max tokens {short} {base64.b64encode(short.encode()).decode()}"

    assert Redactor([short]).text(text) == text
    assert not Redactor([short])


def test_a_secret_within_another_leaves_no_rest() -> None:
    redactor = Redactor(["Bearer abcdefgh", "abcdefgh"])

    assert redactor.text("Bearer abcdefgh, abcdefgh") == "***, ***"


def test_names_and_texts_of_json_are_redacted_and_all_else_stays() -> None:
    value = {"abcdefgh": ["abcdefgh", 12345678, None, True, {"x": "<abcdefgh>"}]}

    assert Redactor(["abcdefgh"]).json(value) == {"***": ["***", 12345678, None, True, {"x": "<***>"}]}


@given(
    secrets=st.lists(st.text("ab", min_size=8, max_size=11), min_size=1, max_size=4),
    text=st.text("ab", max_size=80),
    cuts=st.lists(st.integers(0, 80), max_size=30),
)
def test_a_stream_is_redacted_as_the_whole_text_is_wherever_it_breaks(
    secrets: list[str], text: str, cuts: list[int]
) -> None:
    redactor = Redactor(secrets)
    stream, ends = StreamRedactor(redactor), [*sorted(cuts), len(text)]

    told = "".join(stream.feed(text[begin:end]) for begin, end in zip([0, *ends], ends, strict=False))
    told += stream.flush()

    whole = replace_spans(text, redactor.matcher.find(text)[1])
    assert told.replace("******", "***") == whole
    assert not any(secret in told for secret in secrets)


def test_a_stream_holds_back_nothing_but_what_may_be_a_secret() -> None:
    stream = StreamRedactor(Redactor(["abcdefgh"]))

    assert [stream.feed(piece) for piece in ("plain ", "abc", "x ", "abcd", "efg", "h!")] == [
        "plain ",
        "",
        "abcx ",
        "",
        "",
        "***!",
    ]
    assert stream.flush() == ""
    assert stream.feed("abcdefg") + stream.flush() == "abcdefg"
    assert stream.feed("h") + stream.flush() == "h"


def test_many_secrets_in_a_long_text_are_matched_in_one_pass() -> None:
    rng = random.Random(7)
    secrets = ["".join(rng.choices(string.ascii_letters, k=12)) for _ in range(400)]
    redactor = Redactor(secrets)
    text = " and ".join(secrets) + "." * (SEARCHED // len(redactor.forms))

    redacted = redactor.text(text)

    assert len(redactor.forms) * len(text) > SEARCHED
    assert redacted.startswith(" and ".join(["***"] * 400) + ".")


def test_the_longest_form_at_a_place_counts() -> None:
    assert (
        replace_spans("xabcdefghij", Matcher(["abcdefgh", "abcdefghij", "cdefghij"]).find("xabcdefghij")[1]) == "x***"
    )
