import base64
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stint.domain.inference import Reasoning
from stint.domain.opaque import MAX_BYTES, PREFIX, CompactedContext, decode_opaque, encode_opaque


@given(text=st.text(st.characters(codec="utf-8")), signature=st.text(st.characters(codec="utf-8")))
def test_what_is_encoded_is_read_back(text: str, signature: str) -> None:
    reasoning = Reasoning(text=text, signature=signature)

    encoded = encode_opaque(reasoning)

    assert decode_opaque(encoded, Reasoning) == reasoning
    assert set(encoded) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=.")


@given(text=st.text())
def test_any_other_text_is_refused_in_words(text: str) -> None:
    for encoded in (text, PREFIX + text):
        with pytest.raises(ValueError, match=r"made by this server|damaged"):
            decode_opaque(encoded, Reasoning)


def test_a_text_that_was_cut_is_refused() -> None:
    encoded = encode_opaque(Reasoning(text="Let me think. " * 20))

    with pytest.raises(ValueError, match="damaged"):
        decode_opaque(encoded[:-8], Reasoning)


def test_a_text_of_another_kind_is_refused() -> None:
    encoded = encode_opaque(CompactedContext(summary="They spoke of cats."))

    with pytest.raises(ValueError, match="another type"):
        decode_opaque(encoded, Reasoning)


def test_a_text_that_would_fill_the_memory_is_refused() -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * (MAX_BYTES + 1))).decode()

    with pytest.raises(ValueError, match="damaged"):
        decode_opaque(PREFIX + bomb, Reasoning)
