import base64
import os
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.domain.inference import Reasoning
from stint.domain.openai.opaque import (
    MAX_BYTES,
    PREFIX,
    UNSIGNED_PREFIX,
    CompactedContext,
    OpaqueReader,
    SigningKey,
    check_opaque,
    encode_opaque,
)

KEY = SigningKey("tenant", os.urandom(32))
THOUGHT = Reasoning(text="Let me think. " * 20)


def packed(body: bytes, prefix: str = UNSIGNED_PREFIX, mac: bytes = b"") -> str:
    return prefix + base64.urlsafe_b64encode(mac + zlib.compress(body)).decode()


def read(text: str) -> Reasoning:
    return OpaqueReader().read(text, Reasoning)


@given(text=st.text(st.characters(codec="utf-8")), signature=st.text(st.characters(codec="utf-8")))
def test_what_is_encoded_is_read_back(text: str, signature: str) -> None:
    reasoning = Reasoning(text=text, signature=signature)

    encoded = encode_opaque(reasoning, KEY)

    check_opaque(encoded, Reasoning, KEY)
    assert read(encoded) == reasoning
    assert set(encoded) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=.")


def test_what_was_encoded_before_texts_were_signed_is_read() -> None:
    assert read(packed(f"Reasoning\n{THOUGHT.model_dump_json()}".encode())) == THOUGHT


@given(text=st.text())
def test_any_other_text_is_refused_in_words(text: str) -> None:
    for encoded in (text, PREFIX + text, UNSIGNED_PREFIX + text):
        with pytest.raises(ValueError, match=r"created by this server|damaged"):
            read(encoded)
        with pytest.raises(ValueError, match=r"created by this server|damaged"):
            check_opaque(encoded, Reasoning, KEY)


@given(place=st.integers(0, 400), change=st.integers(1, 255))
def test_no_byte_can_be_changed(place: int, change: int) -> None:
    raw = bytearray(base64.urlsafe_b64decode(encode_opaque(THOUGHT, KEY).removeprefix(PREFIX)))
    raw[place % len(raw)] ^= change

    with pytest.raises(ValueError, match="was changed"):
        check_opaque(PREFIX + base64.urlsafe_b64encode(raw).decode(), Reasoning, KEY)


@pytest.mark.parametrize("length", [0, 1, 15, 16])
def test_a_text_without_a_whole_signature_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="was changed"):
        check_opaque(PREFIX + base64.urlsafe_b64encode(b"x" * length).decode(), Reasoning, KEY)


@pytest.mark.parametrize("other", [SigningKey("another", KEY.secret), SigningKey(KEY.tenant, b"x" * 32)])
def test_a_text_of_another_tenant_or_key_is_refused(other: SigningKey) -> None:
    with pytest.raises(ValueError, match="was not created by this server"):
        check_opaque(encode_opaque(THOUGHT, other), Reasoning, KEY)


def test_a_text_of_another_kind_is_refused() -> None:
    encoded = encode_opaque(CompactedContext(summary="They spoke of cats."), KEY)

    with pytest.raises(ValueError, match="another type"):
        check_opaque(encoded, Reasoning, KEY)
    with pytest.raises(ValueError, match="another type"):
        read(encoded)


def test_a_text_that_was_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="damaged"):
        read(encode_opaque(THOUGHT, KEY)[:-8])


def test_a_text_that_would_fill_the_memory_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 8,000,000 bytes in total"):
        read(packed(b" " * (MAX_BYTES + 1)))


def test_the_texts_of_a_request_are_bounded_in_all() -> None:
    reader = OpaqueReader(limit=1_200)
    text = encode_opaque(THOUGHT, KEY)  # 350 bytes

    for _ in range(3):
        assert reader.read(text, Reasoning) == THOUGHT
    with pytest.raises(ValueError, match="in total"):
        reader.read(text, Reasoning)
    assert reader.read(encode_opaque(Reasoning(), KEY), Reasoning) == Reasoning()


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(KEY)
